// TLS to a server, over any stream, by OpenSSL: from 1.2 on, certificates checked against the name
// unless told otherwise.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <weir/result.h>

#include "net/loop.h"

namespace weir {

struct TlsKeys;  // OpenSSL's.

struct TlsClientOptions {
  std::string ca_file{};      // PEM; empty: those the system trusts.
  std::string certificate{};  // PEM, if the server wants to know who is asking,
  std::string key{};          // with its key; empty: in the same file.
  std::string server_name{};  // What the certificate must be for, if not the host's name.
  bool verify = true;         // False: any certificate will do, so only listeners are shut out.
};

// Immutable; to be shared by all connections and threads.
class TlsClientContext {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const TlsClientContext>> Make(
      const TlsClientOptions& options);
  TlsClientContext(const TlsClientContext&) = delete;
  TlsClientContext& operator=(const TlsClientContext&) = delete;
  ~TlsClientContext();

 private:
  friend class TlsClientStream;
  TlsClientContext();

  std::unique_ptr<TlsKeys> keys_;
  TlsClientOptions options_;
};

// As Loop::Connect, with the handshake. A connection that ends without a farewell of TLS is a lost
// one, since anybody on the way could have cut it. A server that does not accept the client's
// certificate may say so only after the handshake: see Stream::why_broken.
std::unique_ptr<Stream> ConnectTls(Loop& loop, const Endpoint& endpoint,
                                   std::shared_ptr<const TlsClientContext> context,
                                   std::function<void(Result<void>)> connected);

}  // namespace weir
