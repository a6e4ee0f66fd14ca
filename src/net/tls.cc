#include "net/tls.h"

#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/socket_address.h"
#include "net/tls_stream.h"

namespace weir {
namespace {

std::unexpected<Error> Wrong(const std::string& file, const char* what) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, file + what + ": " + TakeTlsError()});
}

std::unexpected<Error> Failed(std::string message) {
  return std::unexpected(Error{ErrorCode::kInternal, std::move(message)});
}

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
  // One of another kind than the certificate's.
  if (SSL_CTX_check_private_key(context) != 1) return Wrong(key, " is not the certificate's key");
  return {};
}

}  // namespace

TlsClientContext::TlsClientContext() : keys_(std::make_unique<TlsKeys>()) {}
TlsClientContext::~TlsClientContext() = default;

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::Make(
    const TlsClientOptions& options) {
  std::shared_ptr<TlsClientContext> made(new TlsClientContext);
  made->options_ = options;
  if (Result<void> done = Prepare(*made->keys_, TLS_client_method()); !done) {
    return std::unexpected(done.error());
  }
  SSL_CTX* const context = made->keys_->context.get();
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options.verify) {
    if (Result<void> done = Trust(context, options.ca_file); !done) {
      return std::unexpected(done.error());
    }
  }
  if (Result<void> done = Identify(context, options); !done) return std::unexpected(done.error());
  return made;
}

class TlsClientStream final : public TlsStream {
 public:
  TlsClientStream(Loop& loop, const Endpoint& endpoint,
                  std::shared_ptr<const TlsClientContext> context,
                  std::function<void(Result<void>)> connected)
      : TlsStream(loop, *context->keys_),
        context_(std::move(context)),
        name_(context_->options_.server_name.empty() ? endpoint.host
                                                     : context_->options_.server_name),
        connected_(std::move(connected)) {
    SSL_set_connect_state(ssl());
    SetBelow(
        loop.Connect(endpoint, [this](Result<void> result) { OnConnected(std::move(result)); }));
  }

 private:
  void OnConnected(Result<void> result) {
    if (result) result = ExpectName();
    if (result) return BeginHandshake();
    GiveUp();
    Conclude(std::move(result));
  }
  // Says what the certificate must be for.
  Result<void> ExpectName();

  void OnHandshakeDone() override { Conclude({}); }
  void OnHandshakeFailed(Failure failure, const std::string& why) override;
  std::string VerdictOnPeer() const override;
  bool MayJustEnd() const noexcept override { return false; }
  // May end the stream.
  void Conclude(Result<void> result) { std::exchange(connected_, {})(std::move(result)); }

  const std::shared_ptr<const TlsClientContext> context_;
  const std::string name_;  // What the certificate must be for.
  std::function<void(Result<void>)> connected_;
};

Result<void> TlsClientStream::ExpectName() {
  const bool is_address =
      AddressWithoutLookup({.host = name_, .port = 0, .path = {}}).has_value() && !name_.empty();
  if (!is_address && !name_.empty() && SSL_set_tlsext_host_name(ssl(), name_.c_str()) != 1) {
    return Failed("'" + name_ + "' is no name for a server: " + TakeTlsError());
  }
  if (!context_->options_.verify) return {};
  if (name_.empty()) return Failed("a unix socket has no name that a certificate could be for");
  X509_VERIFY_PARAM* const expected = SSL_get0_param(ssl());
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int done = is_address ? X509_VERIFY_PARAM_set1_ip_asc(expected, name_.c_str())
                              : X509_VERIFY_PARAM_set1_host(expected, name_.c_str(), 0);
  if (done != 1) return Failed("'" + name_ + "' is no name that a certificate could be for");
  return {};
}

std::string TlsClientStream::VerdictOnPeer() const {
  const long verdict = SSL_get_verify_result(ssl());
  if (!context_->options_.verify || verdict == X509_V_OK) return {};
  const bool wrong_name =
      verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH;
  return std::string("the server's certificate is not accepted: ") +
         X509_verify_cert_error_string(verdict) + (wrong_name ? ", it is not for " + name_ : "");
}

void TlsClientStream::OnHandshakeFailed(Failure failure, const std::string& why) {
  if (failure == Failure::kEnded) {
    return Conclude(Failed("the server ended the connection during the TLS handshake"));
  }
  if (!VerdictOnPeer().empty()) return Conclude(Failed(why));
  Conclude(Failed("the TLS handshake failed" + (why.empty() ? why : ": " + why)));
}

std::unique_ptr<Stream> ConnectTls(Loop& loop, const Endpoint& endpoint,
                                   std::shared_ptr<const TlsClientContext> context,
                                   std::function<void(Result<void>)> connected) {
  return std::make_unique<TlsClientStream>(loop, endpoint, std::move(context),
                                           std::move(connected));
}

}  // namespace weir
