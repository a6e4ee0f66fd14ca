// Where OpenSSL reads and writes what is encrypted: memory that is given back as soon as it is
// empty, so that a connection that is quiet holds none.
#pragma once

#include <string>

#include <openssl/ssl.h>

#include "net/byte_buffer.h"

namespace weir {

struct TlsWire {
  ByteBuffer in;   // Came, and is not decrypted yet.
  ByteBuffer out;  // Encrypted, and not sent yet.

  void GiveBack() {
    if (in.empty() && in.capacity() > 0) in.SetCapacity(0);
    if (out.empty() && out.capacity() > 0) out.SetCapacity(0);
  }
};

// Has it read from the wire and write to it. The wire must outlive it.
void Attach(SSL* ssl, TlsWire& wire);

// What OpenSSL complained of first on this thread, and forgets.
std::string TakeTlsError();

}  // namespace weir
