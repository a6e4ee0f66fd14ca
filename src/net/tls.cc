#include "net/tls.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/tls_stream.h"

namespace weir {
namespace {

std::unexpected<Error> Wrong(const std::string& file, const char* what) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, file + what + ": " + TakeTlsError()});
}

// Nobody is there to be asked for a password.
int NoPassword(char* /*text*/, int /*size*/, int /*for_writing*/, void* /*nothing*/) { return -1; }

Result<void> Trust(SSL_CTX* context, const std::string& ca_file) {
  if (ca_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) == 1) return {};
    return Wrong("the system", " has no certificates to trust");
  }
  if (SSL_CTX_load_verify_file(context, ca_file.c_str()) == 1) return {};
  return Wrong(ca_file, " has no certificates to trust");
}

Result<void> Identify(SSL_CTX* context, const TlsClientOptions& options) {
  if (options.certificate.empty()) {
    if (options.key.empty()) return {};
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument, options.key + " is a key without a certificate"});
  }
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return Wrong(options.certificate, " has no certificate to show");
  }
  const std::string& key = options.key.empty() ? options.certificate : options.key;
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool other = ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH;
    return Wrong(key, other ? " is not the certificate's key" : " has no key that can be read");
  }
  return {};
}

}  // namespace

std::string TakeTlsError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "error " + std::to_string(code) : reason;
}

TlsClientContext::TlsClientContext() : keys_(std::make_unique<Keys>()) {}
TlsClientContext::~TlsClientContext() = default;

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::Make(
    const TlsClientOptions& options) {
  ERR_clear_error();
  std::shared_ptr<TlsClientContext> made(new TlsClientContext);
  made->options_ = options;
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) return Wrong("OpenSSL", " cannot be used");
  made->keys_->context.reset(context);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context, &NoPassword);
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options.verify) {
    if (Result<void> done = Trust(context, options.ca_file); !done) {
      return std::unexpected(done.error());
    }
  }
  if (Result<void> done = Identify(context, options); !done) return std::unexpected(done.error());
  return made;
}

std::unique_ptr<Stream> ConnectTls(Loop& loop, const Endpoint& endpoint,
                                   std::shared_ptr<const TlsClientContext> context,
                                   std::function<void(Result<void>)> connected) {
  return std::make_unique<TlsStream>(loop, endpoint, std::move(context), std::move(connected));
}

}  // namespace weir
