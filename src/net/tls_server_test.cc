#include "net/tls_server.h"

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/certificates_under_test.h"
#include "net/loop_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

// Made once, since keys take a while.
struct TlsServerCertificates {
  CertificateUnderTest authority{{.file = "authority"}};
  CertificateUnderTest other_authority{{.file = "other-authority"}};
  CertificateUnderTest server{{.file = "server", .names = "DNS:weir.test"}, &authority};
  CertificateUnderTest client{{.file = "client", .names = "DNS:client.test"}, &authority};
  CertificateUnderTest expired{{.file = "expired", .names = "DNS:client.test", .ends_in = -10},
                               &authority};
  CertificateUnderTest stranger{{.file = "stranger", .names = "DNS:client.test"}, &other_authority};
  CertificateUnderTest secret{
      {.file = "secret", .names = "DNS:weir.test", .password = "open sesame"}, &authority};

  static const TlsServerCertificates& Shared() {
    static const TlsServerCertificates shared;
    return shared;
  }
};

PemFile Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return {.path = path, .text = text.str()};
}

TlsServerOptions Plain() {
  const TlsServerCertificates& all = TlsServerCertificates::Shared();
  return {.certificate = Read(all.server.file()),
          .key = Read(all.server.key_file()),
          .protocol = "http/1.1"};
}
TlsServerOptions AskingForCertificates() {
  TlsServerOptions options = Plain();
  options.client_ca = Read(TlsServerCertificates::Shared().authority.file());
  return options;
}

struct ClientOptions {
  const CertificateUnderTest* certificate = nullptr;
  int version = TLS1_3_VERSION;
  std::string_view protocols{};  // As they are listed: each with its length before it.
  SSL_SESSION* resumed = nullptr;
  const char* ciphers = nullptr;
};

// A client of OpenSSL's at the far end of a stream.
class TlsClient {
 public:
  TlsClient(FarEnd& far, const ClientOptions& options) : far_(far) {
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, options.version);
    if (options.ciphers != nullptr) SSL_CTX_set_cipher_list(context, options.ciphers);
    if (options.certificate != nullptr) {
      SSL_CTX_use_certificate(context, options.certificate->certificate());
      SSL_CTX_use_PrivateKey(context, options.certificate->key());
    }
    ssl_ = SSL_new(context);
    SSL_CTX_free(context);
    if (!options.protocols.empty()) {
      SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(options.protocols.data()),
                          static_cast<unsigned>(options.protocols.size()));
    }
    if (options.resumed != nullptr) SSL_set_session(ssl_, options.resumed);
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;
  ~TlsClient() {
    SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN);  // Or its session could not be resumed.
    SSL_free(ssl_);
  }

  // Takes in what has come, answers, and sends as far as the other side reads.
  void Work() {
    const std::string came = far_.Take();
    if (!came.empty()) BIO_write(SSL_get_rbio(ssl_), came.data(), static_cast<int>(came.size()));
    ERR_clear_error();
    if (SSL_do_handshake(ssl_) == 1) {
      std::array<char, 4096> room{};
      int count = 0;
      while ((count = SSL_read(ssl_, room.data(), room.size())) > 0) {
        received.append(room.data(), static_cast<std::size_t>(count));
      }
      said_goodbye = (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
    }
    if (const unsigned long error = ERR_get_error(); error != 0) {
      complaint = ERR_reason_error_string(error);
    }
    ERR_clear_error();
    Send();
  }
  void Say(std::string_view text) {
    SSL_write(ssl_, text.data(), static_cast<int>(text.size()));
    Send();
  }
  void SayGoodbye() {
    SSL_shutdown(ssl_);
    Send();
  }
  std::string TakeUnsent() {
    std::string text(BIO_ctrl_pending(SSL_get_wbio(ssl_)), '\0');
    BIO_read(SSL_get_wbio(ssl_), text.data(), static_cast<int>(text.size()));
    return text;
  }
  void Send() {
    std::string unsent = TakeUnsent();
    while (!unsent.empty() && !far_.closed && !far_.room.empty()) {
      far_.Send(unsent.substr(0, piece));
      unsent.erase(0, std::min(piece, unsent.size()));
    }
  }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  bool is_connected() const { return SSL_is_init_finished(ssl_) == 1; }
  SSL* ssl() { return ssl_; }

  std::size_t piece = 1 << 20;  // How much is sent at once.
  std::string received{};
  std::string complaint{};
  bool said_goodbye = false;

 private:
  FarEnd& far_;
  SSL* ssl_;
};

// Reads all there is, and says what it is given.
class Server final : public StreamHandler {
 public:
  void OnRead(std::size_t count) noexcept override {
    ended = count == 0;
    text.append(room.data(), count);
    if (ends_at_read) return stream.reset();
    if (!ended && reads_on) stream->Read(room);
  }
  void OnHangUp() noexcept override { hung_up = true; }
  void OnWritable() noexcept override { ++writable; }
  void OnBroken() noexcept override {
    ++broken;
    stream.reset();  // As connections do.
  }

  std::unique_ptr<Stream> stream;
  std::array<char, 1024> room{};
  std::string text;
  int broken = 0;
  int writable = 0;
  bool ended = false;
  bool hung_up = false;
  bool reads_on = true;
  bool ends_at_read = false;
};

class TlsServerTest : public testing::Test {
 protected:
  void Begin(const TlsServerOptions& options, const ClientOptions& client = {}) {
    const auto context = TlsServerContext::Make(options);
    ASSERT_TRUE(context) << context.error().message;
    Begin(*context, client);
  }
  void Begin(std::shared_ptr<const TlsServerContext> context, const ClientOptions& client = {}) {
    server_.stream.reset();
    server_.text.clear();
    server_.broken = 0;
    server_.ended = false;
    failures_.clear();
    far_ = std::make_unique<FarEnd>();
    server_.stream = AcceptTls(loop_, std::make_unique<StreamUnderTest>(*far_), std::move(context),
                               {.patience = 10s, .on_failure = [this](const TlsFailure& failure) {
                                  failures_ += failure.too_slow ? "slow: " : "";
                                  failures_ += failure.why + '\n';
                                }});
    server_.stream->SetHandler(server_);
    server_.stream->Read(server_.room);
    client_ = std::make_unique<TlsClient>(*far_, client);
  }
  void Work() {
    for (int i = 0; i < 10; ++i) {
      client_->Work();
      loop_.Turn();
    }
  }
  // Whether a word goes through, both ways.
  bool Talks() {
    Work();
    client_->Say("ping");
    Work();
    if (server_.stream) (void)server_.stream->Write("pong");
    Work();
    return server_.text == "ping" && client_->received == "pong" && failures_.empty();
  }
  bool Talks(const TlsServerOptions& options, const ClientOptions& client = {}) {
    Begin(options, client);
    return Talks();
  }

  LoopUnderTest loop_;
  std::unique_ptr<FarEnd> far_;
  std::unique_ptr<TlsClient> client_;
  Server server_;
  std::string failures_;
};

TEST_F(TlsServerTest, CarriesBytesBothWays) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    EXPECT_TRUE(Talks(Plain(), {.version = version})) << failures_;
  }
}

TEST_F(TlsServerTest, CarriesBytesInPiecesOfOne) {
  Begin(Plain());
  client_->piece = 1;
  EXPECT_TRUE(Talks()) << failures_;
}

TEST_F(TlsServerTest, WritesNothingBeforeTheHandshakeAndSaysWhenItCan) {
  Begin(Plain());
  EXPECT_EQ(server_.stream->Write("early"), 0U);
  server_.stream->AwaitWritable();
  EXPECT_FALSE(far_->awaited);
  Work();
  far_->Open(0);
  EXPECT_EQ(server_.writable, 1);
  EXPECT_EQ(server_.stream->Write("now"), 3U);
  Work();
  EXPECT_EQ(client_->received, "now");
}

TEST_F(TlsServerTest, TakesWhatComesTogetherWithTheEndOfTheHandshake) {
  Begin(Plain());
  // One flight: what ends the handshake, and the first request.
  for (int i = 0; i < 10 && !client_->is_connected(); ++i) {
    const std::string came = far_->Take();
    BIO_write(SSL_get_rbio(client_->ssl()), came.data(), static_cast<int>(came.size()));
    if (SSL_do_handshake(client_->ssl()) != 1) client_->Send();
  }
  client_->Say("ping");
  EXPECT_EQ(server_.text, "ping");
}

TEST_F(TlsServerTest, RefusesVersionsOfThePast) {
  EXPECT_FALSE(Talks(Plain(), {.version = TLS1_1_VERSION}));
  EXPECT_EQ(failures_, "unsupported protocol\n");
  EXPECT_EQ(client_->complaint, "tlsv1 alert protocol version");
  EXPECT_EQ(server_.broken, 1);
}

TEST_F(TlsServerTest, RefusesWeakCiphers) {
  EXPECT_FALSE(Talks(Plain(), {.version = TLS1_2_VERSION, .ciphers = "NULL:aNULL"}));
  EXPECT_EQ(failures_, "no shared cipher\n");
}

TEST_F(TlsServerTest, AgreesOnTheOneProtocolItSpeaks) {
  EXPECT_TRUE(Talks(Plain(), {.protocols = "\x02h2\x08http/1.1"}));
  EXPECT_EQ(client_->protocol(), "http/1.1");
  EXPECT_TRUE(Talks(Plain()));
  EXPECT_EQ(client_->protocol(), "");
  EXPECT_FALSE(Talks(Plain(), {.protocols = "\x02h2\x07gemini1"}));
  EXPECT_EQ(failures_, "no application protocol\n");
  EXPECT_EQ(client_->complaint, "tlsv1 alert no application protocol");

  TlsServerOptions nameless = Plain();
  nameless.protocol.clear();
  EXPECT_TRUE(Talks(nameless));
  EXPECT_FALSE(Talks(nameless, {.protocols = "\x08http/1.1"})) << "a browser that was led astray";
}

TEST_F(TlsServerTest, WantsACertificateThatItsAuthorityVouchesFor) {
  const TlsServerCertificates& all = TlsServerCertificates::Shared();
  const TlsServerOptions asking = AskingForCertificates();
  EXPECT_TRUE(Talks(asking, {.certificate = &all.client})) << failures_;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    EXPECT_FALSE(Talks(asking, {.version = version}));
    EXPECT_EQ(failures_, "peer did not return a certificate\n");
    EXPECT_FALSE(Talks(asking, {.certificate = &all.expired, .version = version}));
    EXPECT_EQ(failures_, "the client's certificate is not accepted: certificate has expired\n");
    EXPECT_FALSE(Talks(asking, {.certificate = &all.stranger, .version = version}));
    EXPECT_EQ(failures_,
              "the client's certificate is not accepted: unable to get local issuer certificate\n");
    EXPECT_EQ(server_.text, "") << "nothing of what was sent is read";
  }
  EXPECT_TRUE(Talks(Plain(), {.certificate = &all.stranger})) << "nobody asked for it";
}

TEST_F(TlsServerTest, ResumesASessionUnderTheContextItBeganWithOnly) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto context = *TlsServerContext::Make(Plain());
    Begin(context, {.version = version});
    ASSERT_TRUE(Talks());
    SSL_SESSION* const session = SSL_get1_session(client_->ssl());
    Begin(context, {.version = version, .resumed = session});
    ASSERT_TRUE(Talks());
    EXPECT_EQ(SSL_session_reused(client_->ssl()), 1);
    // Another one knows nothing of it, and goes the long way.
    Begin(Plain(), {.version = version, .resumed = session});
    EXPECT_TRUE(Talks());
    EXPECT_EQ(SSL_session_reused(client_->ssl()), 0);
    SSL_SESSION_free(session);
  }
}

TEST_F(TlsServerTest, NeverResumesWhereClientsShowCertificates) {
  const TlsServerCertificates& all = TlsServerCertificates::Shared();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto context = *TlsServerContext::Make(AskingForCertificates());
    Begin(context, {.certificate = &all.client, .version = version});
    ASSERT_TRUE(Talks());
    SSL_SESSION* const session = SSL_get1_session(client_->ssl());
    Begin(context, {.certificate = &all.client, .version = version, .resumed = session});
    EXPECT_TRUE(Talks());
    EXPECT_EQ(SSL_session_reused(client_->ssl()), 0);
    Begin(context, {.version = version, .resumed = session});
    EXPECT_FALSE(Talks()) << "it must show the certificate again";
    SSL_SESSION_free(session);
  }
}

TEST_F(TlsServerTest, KeepsAConnectionWhoseContextIsNoLongerUsed) {
  auto context = *TlsServerContext::Make(Plain());
  Begin(std::move(context));
  EXPECT_TRUE(Talks());
}

TEST_F(TlsServerTest, EndsAHandshakeThatTakesTooLong) {
  Begin(Plain());
  loop_.Advance(9s);
  EXPECT_EQ(server_.broken, 0);
  far_->Send(client_->TakeUnsent());
  far_->Send("\x16");  // A byte now and then buys no time.
  loop_.Advance(2s);
  EXPECT_EQ(server_.broken, 1);
  EXPECT_EQ(failures_, "slow: it takes too long\n");
  EXPECT_TRUE(far_->closed);
}

TEST_F(TlsServerTest, IsPatientWithThoseWhoAreThrough) {
  Begin(Plain());
  Work();
  loop_.Advance(1h);
  EXPECT_EQ(server_.broken, 0);
  EXPECT_TRUE(Talks());
}

TEST_F(TlsServerTest, SaysNothingOfThoseWhoLeaveWithoutAWord) {
  Begin(Plain());
  far_->FinishSending();
  EXPECT_EQ(server_.broken, 1);
  EXPECT_EQ(failures_, "");

  Begin(Plain());
  far_->Send("\x16\x03");
  far_->FinishSending();
  EXPECT_EQ(server_.broken, 1);
  EXPECT_EQ(failures_, "the client ended the connection\n");
}

TEST_F(TlsServerTest, RefusesWhatIsNoTls) {
  Begin(Plain());
  far_->Send("GET / HTTP/1.1\r\nHost: weir\r\n\r\n");
  EXPECT_EQ(failures_, "http request\n");
  EXPECT_EQ(server_.broken, 1);
  Begin(Plain());
  far_->Send("*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(failures_, "wrong version number; is it TLS that is spoken there?\n");
  Begin(Plain());
  far_->Send(std::string(100, '\0'));
  EXPECT_EQ(server_.broken, 1);
  EXPECT_EQ(server_.text, "");
}

// OpenSSL makes room for as much as is announced.
TEST_F(TlsServerTest, RefusesFirstWordsThatAreTooMany) {
  const std::string record("\x16\x03\x01\x40\x00", 5);
  Begin(Plain());
  far_->Send(record + std::string("\x01\x00\x40\x00", 4));
  EXPECT_EQ(failures_, "");
  Begin(Plain());
  far_->Send(record.substr(0, 2));
  far_->Send(record.substr(2) + std::string("\x01\x00", 2));
  far_->Send(std::string("\x40", 1));
  EXPECT_EQ(failures_, "");
  far_->Send(std::string("\x01", 1));
  EXPECT_EQ(failures_, "its first words are too many\n");
  Begin(Plain());
  far_->Send(std::string("\x16\x03\x01\x00\x01\x01\x16\x03\x01", 9));
  EXPECT_EQ(failures_, "its first words are cut into pieces too small\n");
}

TEST_F(TlsServerTest, TakesAnEndWithoutAFarewellForTheEnd) {
  ASSERT_TRUE(Talks(Plain()));
  far_->FinishSending();
  EXPECT_TRUE(server_.ended);
  EXPECT_EQ(server_.broken, 0);
  EXPECT_EQ(server_.stream->Write("still answered"), 14U);
  Work();
  EXPECT_EQ(client_->received, "pongstill answered");

  ASSERT_TRUE(Talks(Plain()));
  client_->SayGoodbye();
  EXPECT_TRUE(server_.ended);
}

TEST_F(TlsServerTest, SaysGoodbye) {
  ASSERT_TRUE(Talks(Plain()));
  server_.stream->FinishWriting();
  Work();
  EXPECT_TRUE(client_->said_goodbye);
  EXPECT_TRUE(far_->finished);

  ASSERT_TRUE(Talks(Plain()));
  server_.ends_at_read = true;
  client_->Say("bye");
  EXPECT_TRUE(far_->closed);
  client_->Work();
  EXPECT_TRUE(client_->said_goodbye);
  server_.ends_at_read = false;
}

TEST_F(TlsServerTest, MayBeFinishedBeforeTheHandshakeIs) {
  Begin(Plain());
  server_.stream->FinishWriting();
  EXPECT_TRUE(far_->finished);
  Work();
  loop_.Advance(1h);
  far_->FinishSending();
  EXPECT_EQ(server_.broken, 0);
  EXPECT_EQ(failures_, "");
  EXPECT_EQ(far_->received, "");
}

TEST_F(TlsServerTest, FindsForgedBytes) {
  ASSERT_TRUE(Talks(Plain()));
  far_->Send(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
  EXPECT_EQ(server_.broken, 1);
  EXPECT_EQ(server_.text, "ping");
}

TEST_F(TlsServerTest, DoesNotNegotiateAgain) {
  ASSERT_TRUE(Talks(Plain(), {.version = TLS1_2_VERSION}));
  ASSERT_EQ(SSL_renegotiate(client_->ssl()), 1);
  Work();
  EXPECT_EQ(client_->complaint, "no renegotiation");
}

// Each attempt is answered by an alert, and nobody takes those.
TEST_F(TlsServerTest, KeepsLittleForThoseWhoAskAndDoNotListen) {
  ASSERT_TRUE(Talks(Plain(), {.version = TLS1_3_VERSION}));
  far_->window = 0;
  std::size_t most = 0;
  for (int i = 0; i < 20'000 && server_.broken == 0; ++i) {
    SSL_key_update(client_->ssl(), SSL_KEY_UPDATE_REQUESTED);
    client_->Say("x");
    if (server_.stream) most = std::max(most, server_.stream->buffered());
  }
  EXPECT_LT(most, 400'000U);
}

TEST_F(TlsServerTest, HoldsNoMemoryWhileNothingIsOnItsWay) {
  ASSERT_TRUE(Talks(Plain()));
  EXPECT_EQ(server_.stream->buffered(), 0U);
  far_->window = 10;
  EXPECT_EQ(server_.stream->Write(std::string(1000, 'x')), 0U);
  EXPECT_GE(server_.stream->buffered(), 990U);
  far_->Open(1 << 20);
  EXPECT_EQ(server_.stream->buffered(), 0U);
  EXPECT_EQ(server_.stream->Write(std::string(1000, 'x')), 1000U);
}

std::string ServerComplaint(const TlsServerOptions& options) {
  const auto context = TlsServerContext::Make(options);
  return context ? "" : context.error().message;
}

TEST(TlsServerContext, NamesTheFileThatIsWrong) {
  const TlsServerCertificates& all = TlsServerCertificates::Shared();
  TlsServerOptions options = Plain();
  options.certificate.text = "nothing";
  EXPECT_EQ(ServerComplaint(options),
            all.server.file() + " has no certificate to show: no start line");
  options.certificate.text = Plain().certificate.text.substr(0, 300);
  EXPECT_TRUE(
      ServerComplaint(options).starts_with(all.server.file() + " has no certificate to show: "));
  options = Plain();
  options.key = Read(all.server.file());
  EXPECT_TRUE(
      ServerComplaint(options).starts_with(all.server.file() + " has no key that can be read: "));
  options.key = Read(all.client.key_file());
  EXPECT_TRUE(ServerComplaint(options).starts_with(all.client.key_file() + " is not the key of " +
                                                   all.server.file() + ": "));
  options.key = {.path = "ed25519.key",
                 .text =
                     "-----BEGIN PRIVATE KEY-----\n"
                     "MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n"
                     "-----END PRIVATE KEY-----\n"};
  EXPECT_TRUE(
      ServerComplaint(options).starts_with("ed25519.key is not the key of " + all.server.file()))
      << "a key of another kind";
  // Nobody can be asked for its password.
  options.certificate = Read(all.secret.file());
  options.key = Read(all.secret.key_file());
  EXPECT_TRUE(ServerComplaint(options).starts_with(all.secret.key_file() +
                                                   " has no key that can be read: "));
  options = Plain();
  options.client_ca = {.path = "ca.pem", .text = ""};
  EXPECT_TRUE(ServerComplaint(options).starts_with("ca.pem has no certificates to trust: "));
  // All of a chain must be there, not only what comes before the first that is broken.
  options = Plain();
  options.certificate.text += "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_TRUE(
      ServerComplaint(options).starts_with(all.server.file() + " has no certificate to show: "));
}

TEST(TlsServerContext, KnowsWhenItsCertificateEnds) {
  const auto context = TlsServerContext::Make(Plain());
  const auto left = (*context)->expires() - SystemClock::Shared().Read().wall;
  EXPECT_LT(left, 3600s);
  EXPECT_GT(left, 3000s);
}

}  // namespace
}  // namespace weir
