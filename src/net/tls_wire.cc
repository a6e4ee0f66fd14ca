#include "net/tls_wire.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include <openssl/bio.h>
#include <openssl/err.h>

namespace weir {
namespace {

TlsWire& WireOf(BIO* bio) { return *static_cast<TlsWire*>(BIO_get_data(bio)); }

int ReadFrom(BIO* bio, char* room, std::size_t size, std::size_t* count) {
  ByteBuffer& in = WireOf(bio).in;
  BIO_clear_retry_flags(bio);
  *count = std::min(size, in.size());
  if (*count == 0) {
    BIO_set_retry_read(bio);  // There may be more later. That there is not is for others to know.
    return 0;
  }
  std::memcpy(room, in.view().data(), *count);
  in.Consume(*count);
  return 1;
}

int WriteTo(BIO* bio, const char* bytes, std::size_t size, std::size_t* count) {
  BIO_clear_retry_flags(bio);
  WireOf(bio).out.Append({bytes, size});
  *count = size;
  return 1;
}

long Control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* WireMethod() {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_read_ex(made, ReadFrom);
    BIO_meth_set_write_ex(made, WriteTo);
    BIO_meth_set_ctrl(made, Control);
    return made;
  }();
  return kMethod;
}

}  // namespace

void Attach(SSL* ssl, TlsWire& wire) {
  BIO* const bio = BIO_new(WireMethod());
  BIO_set_data(bio, &wire);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
}

std::string TakeTlsError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "error " + std::to_string(code) : reason;
}

}  // namespace weir
