#include "net/tls_server.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "net/tls_stream.h"

namespace weir {
namespace {

// Far more than a chain of certificates has; what is read of a client who shows one.
constexpr long kMostCertificates = 32'768;
// A client's first words. OpenSSL would make room for eight times that because it was announced.
constexpr std::size_t kMostHello = 16'384;

struct Free {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, Free>;

std::unexpected<Error> Wrong(const PemFile& file, const char* what) {
  return std::unexpected(
      Error{ErrorCode::kInvalidArgument, file.path + what + ": " + TakeTlsError()});
}

// All certificates of the file. None if it has none, or one of them cannot be read.
std::vector<Certificate> CertificatesOf(const PemFile& file) {
  ERR_clear_error();
  const std::unique_ptr<BIO, Free> text(
      BIO_new_mem_buf(file.text.data(), static_cast<int>(file.text.size())));
  std::vector<Certificate> found;
  while (Certificate next{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)}) {
    found.push_back(std::move(next));
  }
  // That no more begins is how a file ends.
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) return {};
  if (!found.empty()) ERR_clear_error();
  return found;
}

Result<void> Show(SSL_CTX* context, const TlsServerOptions& options) {
  std::vector<Certificate> chain = CertificatesOf(options.certificate);
  if (chain.empty() || SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return Wrong(options.certificate, " has no certificate to show");
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) == 1) continue;
    return Wrong(options.certificate, " has a certificate that cannot be shown");
  }
  const std::unique_ptr<BIO, Free> text(
      BIO_new_mem_buf(options.key.text.data(), static_cast<int>(options.key.text.size())));
  const std::unique_ptr<EVP_PKEY, Free> key(PEM_read_bio_PrivateKey(
      text.get(), nullptr, SSL_CTX_get_default_passwd_cb(context), nullptr));
  if (key == nullptr) return Wrong(options.key, " has no key that can be read");
  // The first says nothing of a key of another kind than the certificate's.
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1) {
    return {};
  }
  return std::unexpected(Error{
      ErrorCode::kInvalidArgument,
      options.key.path + " is not the key of " + options.certificate.path + ": " + TakeTlsError()});
}

Result<void> AskClients(SSL_CTX* context, const PemFile& file) {
  const std::vector<Certificate> trusted = CertificatesOf(file);
  if (trusted.empty()) return Wrong(file, " has no certificates to trust");
  for (const Certificate& one : trusted) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()) == 1 &&
        SSL_CTX_add_client_CA(context, one.get()) == 1) {
      continue;
    }
    return Wrong(file, " has a certificate that cannot be trusted");
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Whoever came with a certificate that was good then must not come back with less.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  return {};
}

int ChooseProtocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int bytes, void* ours) {
  const auto& only = *static_cast<const std::string*>(ours);
  if (only.empty()) return SSL_TLSEXT_ERR_ALERT_FATAL;
  unsigned char* found = nullptr;
  const int done =
      SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(only.data()),
                            static_cast<unsigned>(only.size()), offered, bytes);
  *chosen = found;
  return done == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

WallTime EndOf(SSL_CTX* context) {
  tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context)), &parts) != 1)
    return {};
  using std::chrono::seconds;
  const std::chrono::sys_days day =
      std::chrono::year(parts.tm_year + 1900) / (parts.tm_mon + 1) / parts.tm_mday;
  // One that never ends in practice would end before it began if it were counted in nanoseconds.
  const std::chrono::sys_seconds end = day + std::chrono::hours(parts.tm_hour) +
                                       std::chrono::minutes(parts.tm_min) + seconds(parts.tm_sec);
  return std::min(end, std::chrono::floor<seconds>(WallTime::max()));
}

}  // namespace

TlsServerContext::TlsServerContext() : keys_(std::make_unique<TlsKeys>()) {}
TlsServerContext::~TlsServerContext() = default;

Result<std::shared_ptr<const TlsServerContext>> TlsServerContext::Make(
    const TlsServerOptions& options) {
  std::shared_ptr<TlsServerContext> made(new TlsServerContext);
  if (Result<void> done = Prepare(*made->keys_, TLS_server_method()); !done) {
    return std::unexpected(done.error());
  }
  SSL_CTX* const context = made->keys_->context.get();
  SSL_CTX_set_security_level(context, 2);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // Tickets are kept by clients.
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_max_cert_list(context, kMostCertificates);
  if (!options.protocol.empty()) {
    made->protocol_ = static_cast<char>(options.protocol.size()) + options.protocol;
  }
  SSL_CTX_set_alpn_select_cb(context, &ChooseProtocol, &made->protocol_);
  if (Result<void> done = Show(context, options); !done) return std::unexpected(done.error());
  if (!options.client_ca.path.empty()) {
    if (Result<void> done = AskClients(context, options.client_ca); !done) {
      return std::unexpected(done.error());
    }
  }
  made->expires_ = EndOf(context);
  return made;
}

class TlsServerStream final : public TlsStream {
 public:
  TlsServerStream(Loop& loop, std::unique_ptr<Stream> accepted,
                  std::shared_ptr<const TlsServerContext> context, TlsAcceptance acceptance)
      : TlsStream(loop, *context->keys_),
        context_(std::move(context)),
        acceptance_(std::move(acceptance)) {
    SSL_set_accept_state(ssl());
    SetBelow(std::move(accepted));
  }

  void SetHandler(StreamHandler& handler) noexcept override {
    TlsStream::SetHandler(handler);
    SetPatience(acceptance_.patience);
    BeginHandshake();
  }

 private:
  void OnHandshakeDone() override { Open(); }
  void OnHandshakeFailed(Failure failure, const std::string& why) override {
    if (has_heard() || failure != Failure::kEnded) acceptance_.on_failure(Describe(failure, why));
    handler().OnBroken();
  }
  TlsFailure Describe(Failure failure, const std::string& why) const {
    if (failure == Failure::kTooSlow) {
      return {.peer = peer(), .too_slow = true, .why = "it takes too long"};
    }
    if (failure == Failure::kEnded) {
      return {.peer = peer(), .why = "the client ended the connection"};
    }
    return {.peer = peer(), .why = why};
  }
  std::string VerdictOnPeer() const override {
    const long verdict = SSL_get_verify_result(ssl());
    if (verdict == X509_V_OK) return {};
    return std::string("the client's certificate is not accepted: ") +
           X509_verify_cert_error_string(verdict);
  }
  std::string_view Objection(std::string_view fresh) override;
  bool MayJustEnd() const noexcept override { return true; }

  const std::shared_ptr<const TlsServerContext> context_;
  const TlsAcceptance acceptance_;
  // The first that was heard: a record's kind, version (2) and size (2), a message's kind and size
  // (3).
  std::array<unsigned char, 9> head_{};
  std::size_t head_size_ = 0;
};

std::string_view TlsServerStream::Objection(std::string_view fresh) {
  constexpr unsigned char kHandshakeRecord = 22;
  fresh = fresh.substr(0, head_.size() - head_size_);
  std::ranges::copy(fresh, head_.begin() + static_cast<std::ptrdiff_t>(head_size_));
  head_size_ += fresh.size();
  if (head_size_ < head_.size() || head_[0] != kHandshakeRecord) return {};
  const std::size_t record = head_[3] * std::size_t{256} + head_[4];
  if (record < 4) return "its first words are cut into pieces too small";
  const std::size_t hello = (head_[6] * std::size_t{256} + head_[7]) * 256 + head_[8];
  return hello > kMostHello ? "its first words are too many" : "";
}

std::unique_ptr<Stream> AcceptTls(Loop& loop, std::unique_ptr<Stream> accepted,
                                  std::shared_ptr<const TlsServerContext> context,
                                  TlsAcceptance acceptance) {
  return std::make_unique<TlsServerStream>(loop, std::move(accepted), std::move(context),
                                           std::move(acceptance));
}

}  // namespace weir
