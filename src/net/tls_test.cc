#include "net/tls.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/certificates_under_test.h"
#include "net/loop_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

// Made once, since keys take a while.
struct TlsClientCertificates {
  CertificateUnderTest authority{{.file = "authority"}};
  CertificateUnderTest other_authority{{.file = "other-authority"}};
  CertificateUnderTest server{{.file = "server", .names = "DNS:redis.test,IP:192.0.2.7"},
                              &authority};
  CertificateUnderTest expired{{.file = "expired", .names = "DNS:redis.test", .ends_in = -10},
                               &authority};
  CertificateUnderTest early{{.file = "early", .names = "DNS:redis.test", .begins_in = 1000},
                             &authority};
  CertificateUnderTest self_signed{{.file = "self-signed", .names = "DNS:redis.test"}};
  CertificateUnderTest client{{.file = "client", .names = "DNS:client.test"}, &authority};
  CertificateUnderTest secret{
      {.file = "secret", .names = "DNS:client.test", .password = "open sesame"}, &authority};

  static const TlsClientCertificates& Shared() {
    static const TlsClientCertificates shared;
    return shared;
  }
};

struct ServerOptions {
  const CertificateUnderTest* certificate = &TlsClientCertificates::Shared().server;
  int version = TLS1_3_VERSION;
  bool wants_certificate = false;
};

// A server of OpenSSL's at the far end of a stream.
class TlsServer {
 public:
  explicit TlsServer(FarEnd& far, const ServerOptions& options) : far_(far) {
    SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(context, options.certificate->certificate());
    SSL_CTX_use_PrivateKey(context, options.certificate->key());
    SSL_CTX_set_max_proto_version(context, options.version);
    if (options.wants_certificate) {
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      SSL_CTX_load_verify_file(context, TlsClientCertificates::Shared().authority.file().c_str());
    }
    ssl_ = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() { SSL_free(ssl_); }

  // Takes in what has come, answers, and sends as far as the other side reads.
  void Work() {
    const std::string came = far_.Take();
    if (!came.empty()) BIO_write(SSL_get_rbio(ssl_), came.data(), static_cast<int>(came.size()));
    ERR_clear_error();
    if (SSL_do_handshake(ssl_) == 1) {
      std::array<char, 4096> room{};
      while (const int count = std::max(SSL_read(ssl_, room.data(), room.size()), 0)) {
        received.append(room.data(), static_cast<std::size_t>(count));
      }
      said_goodbye = (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
    }
    ERR_clear_error();
    Send();
  }
  void Say(std::string_view text) {
    for (; !text.empty(); text.remove_prefix(std::min(record, text.size()))) {
      SSL_write(ssl_, text.data(), static_cast<int>(std::min(record, text.size())));
    }
    Send();
  }
  void SayGoodbye() {
    SSL_shutdown(ssl_);
    Send();
  }
  void Send() {
    if (const std::size_t more = BIO_ctrl_pending(SSL_get_wbio(ssl_)); more > 0) {
      std::string text(more, '\0');
      BIO_read(SSL_get_wbio(ssl_), text.data(), static_cast<int>(more));
      unsent += text;
    }
    while (!unsent.empty() && !far_.closed && !far_.room.empty()) {
      const std::string some = unsent.substr(0, std::min(piece, far_.room.size()));
      unsent.erase(0, some.size());
      far_.Send(some);
    }
  }
  const char* asked_for() const { return SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name); }

  std::size_t piece = 1 << 20;   // How much comes at once.
  std::size_t record = 1 << 14;  // How much is encrypted at once.
  std::string received{};
  std::string unsent{};  // Encrypted.
  bool said_goodbye = false;

 private:
  FarEnd& far_;
  SSL* ssl_;
};

// A client of the stream: reads all there is, and sends what it is given as it goes.
class Client final : public StreamHandler {
 public:
  void Write(std::string_view more) {
    outbox += more;
    Push();
  }
  void Read() { stream->Read(std::span(room).first(most)); }

  void OnRead(std::size_t count) noexcept override {
    ended = count == 0;
    text.append(room.data(), count);
    if (on_read) on_read();
    if (stream && reads_on && !ended) Read();
  }
  void OnHangUp() noexcept override { hung_up = true; }
  void OnWritable() noexcept override {
    ++writable;
    Push();
  }
  void OnBroken() noexcept override {
    ++broken;
    why = stream->why_broken();
  }

  std::unique_ptr<Stream> stream;
  std::array<char, 1024> room{};
  std::size_t most = 1024;
  std::string text;
  std::string outbox;
  std::function<void()> on_read;
  std::string why;
  int broken = 0;
  int writable = 0;
  bool ended = false;
  bool hung_up = false;
  bool reads_on = true;
  bool lost = false;

 private:
  void Push() {
    const std::optional<std::size_t> sent = stream->Write(outbox);
    lost = !sent;
    outbox.erase(0, sent.value_or(0));
    if (!lost && !outbox.empty()) stream->AwaitWritable();
  }
};

class TlsTest : public testing::Test {
 protected:
  static TlsClientOptions Trusting() {
    return {.ca_file = TlsClientCertificates::Shared().authority.file()};
  }
  static Endpoint At(const char* host) { return {.host = host, .port = 6379}; }

  // Begins to connect, and is let in.
  void Begin(const TlsClientOptions& options, const ServerOptions& server = {},
             const Endpoint& endpoint = At("redis.test")) {
    const auto context = TlsClientContext::Make(options);
    ASSERT_TRUE(context) << context.error().message;
    client_.stream = ConnectTls(loop_, endpoint, *context, [this](const Result<void>& done) {
      outcome_ = done ? "connected" : done.error().message;
      if (!done) return;
      client_.stream->SetHandler(client_);
      if (client_.reads_on) client_.Read();
    });
    attempt_ = loop_.attempts.back().get();
    server_ = std::make_unique<TlsServer>(attempt_->far, server);
    attempt_->Accept();
  }
  void Work() {
    for (int i = 0; i < 10; ++i) {
      server_->Work();
      loop_.Turn();
    }
  }
  std::string Connect(const TlsClientOptions& options, const ServerOptions& server = {},
                      const Endpoint& endpoint = At("redis.test")) {
    Begin(options, server, endpoint);
    Work();
    return outcome_;
  }
  FarEnd& far() { return attempt_->far; }

  LoopUnderTest loop_;
  ConnectAttempt* attempt_ = nullptr;
  std::unique_ptr<TlsServer> server_;
  Client client_;
  std::string outcome_;
};

TEST_F(TlsTest, CarriesBytesBothWays) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ASSERT_EQ(Connect(Trusting(), {.version = version}), "connected");
    EXPECT_STREQ(server_->asked_for(), "redis.test");
    client_.Write("ping");
    Work();
    EXPECT_EQ(std::exchange(server_->received, {}), "ping");
    server_->Say("pong");
    EXPECT_EQ(std::exchange(client_.text, {}), "pong");
  }
}

TEST_F(TlsTest, CarriesBytesInPiecesOfOne) {
  Begin(Trusting());
  server_->piece = 1;
  far().window = 0;
  while (outcome_.empty()) {
    far().Open(1);
    server_->Work();
  }
  ASSERT_EQ(outcome_, "connected");
  client_.Write("ping");
  while (server_->received.size() < 4) {
    far().Open(1);
    server_->Work();
  }
  EXPECT_EQ(server_->received, "ping");
  server_->Say("pong");
  EXPECT_EQ(client_.text, "pong");
}

TEST_F(TlsTest, CarriesMuchBothWaysPastASlowReader) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  std::string much;
  for (int i = 0; much.size() < 1'000'000; ++i) much += std::to_string(i) + ' ';
  far().window = 100;
  server_->piece = 777;
  client_.most = 100;
  client_.reads_on = false;  // One read at a time.
  client_.Write(much);
  EXPECT_GT(client_.outbox.size(), 900'000U) << "takes more than it may keep";
  server_->Say(much);
  for (std::size_t step = 1; client_.text.size() < much.size() || !client_.outbox.empty(); ++step) {
    far().Open(step % 3 == 0 ? 1 : step % 1000);
    server_->Work();
    if (far().room.empty()) client_.Read();
    loop_.Turn();
    ASSERT_LT(step, 100'000U);
    ASSERT_TRUE(!client_.broken && !client_.lost);
  }
  far().Open(1 << 20);
  server_->Work();
  EXPECT_TRUE(server_->received == much);
  EXPECT_TRUE(client_.text == much);
}

TEST_F(TlsTest, ReadsSeveralRecordsAtOnce) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  int reads = 0;
  client_.on_read = [&] { ++reads; };
  server_->record = 10;
  server_->Say(std::string(500, 'x'));
  EXPECT_EQ(client_.text.size(), 500U);
  EXPECT_EQ(reads, 1);
}

TEST_F(TlsTest, NeverTellsFromWithinARead) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  client_.reads_on = false;
  client_.Read();
  client_.most = 3;
  client_.Read();  // Takes the place of the first.
  server_->Say("abcdef");
  EXPECT_EQ(client_.text, "abc");
  client_.Read();
  EXPECT_EQ(client_.text, "abc");
  loop_.Turn();
  EXPECT_EQ(client_.text, "abcdef");
}

TEST_F(TlsTest, SaysWhenMoreCanBeWrittenOnlyIfAskedAndOnceAllIsSent) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  far().window = 5;
  EXPECT_EQ(client_.stream->Write("hello"), 0U) << "encrypted, and kept until it goes";
  EXPECT_EQ(client_.stream->Write("hello, world"), 0U);
  EXPECT_TRUE(far().awaited);
  far().Open(1000);
  EXPECT_EQ(client_.writable, 0);
  client_.stream->AwaitWritable();
  far().Open(1);
  EXPECT_EQ(client_.writable, 1);
  EXPECT_EQ(client_.stream->Write("hello, world"), 12U);
  Work();
  EXPECT_EQ(server_->received, "hello, world") << "nothing twice";
}

TEST_F(TlsTest, RefusesACertificateThatIsNotGoodNow) {
  const TlsClientCertificates& all = TlsClientCertificates::Shared();
  const std::string prefix = "the server's certificate is not accepted: ";
  EXPECT_EQ(Connect(Trusting(), {.certificate = &all.expired}), prefix + "certificate has expired");
  EXPECT_EQ(Connect(Trusting(), {.certificate = &all.early}),
            prefix + "certificate is not yet valid");
}

TEST_F(TlsTest, RefusesACertificateOfNobodyItTrusts) {
  const TlsClientCertificates& all = TlsClientCertificates::Shared();
  const std::string prefix = "the server's certificate is not accepted: ";
  EXPECT_EQ(Connect(Trusting(), {.certificate = &all.self_signed}),
            prefix + "self-signed certificate");
  EXPECT_EQ(Connect({.ca_file = all.other_authority.file()}),
            prefix + "unable to get local issuer certificate");
  EXPECT_EQ(Connect({}), prefix + "unable to get local issuer certificate");
  EXPECT_EQ(Connect({.ca_file = all.self_signed.file()}, {.certificate = &all.self_signed}),
            "connected");
}

TEST_F(TlsTest, RefusesACertificateForAnotherName) {
  const std::string prefix = "the server's certificate is not accepted: ";
  EXPECT_EQ(Connect(Trusting(), {}, At("other.test")),
            prefix + "hostname mismatch, it is not for other.test");
  EXPECT_EQ(Connect(Trusting(), {}, At("192.0.2.8")),
            prefix + "IP address mismatch, it is not for 192.0.2.8");
  EXPECT_EQ(Connect(Trusting(), {}, At("192.0.2.7")), "connected");
  EXPECT_EQ(server_->asked_for(), nullptr) << "an address is no name";
}

TEST_F(TlsTest, ExpectsTheNameItIsTold) {
  TlsClientOptions options = Trusting();
  options.server_name = "redis.test";
  EXPECT_EQ(Connect(options, {}, At("10.0.0.1")), "connected");
  EXPECT_STREQ(server_->asked_for(), "redis.test");
  EXPECT_EQ(Connect(options, {}, {.path = "/run/redis.sock"}), "connected");
  EXPECT_EQ(Connect(Trusting(), {}, {.path = "/run/redis.sock"}),
            "a unix socket has no name that a certificate could be for");
}

TEST_F(TlsTest, AcceptsAnyCertificateWithoutVerification) {
  const TlsClientCertificates& all = TlsClientCertificates::Shared();
  for (const auto* certificate : {&all.self_signed, &all.expired, &all.server}) {
    EXPECT_EQ(Connect({.verify = false}, {.certificate = certificate}, At("other.test")),
              "connected");
  }
}

TEST_F(TlsTest, ShowsItsCertificateToAServerThatAsks) {
  const TlsClientCertificates& all = TlsClientCertificates::Shared();
  TlsClientOptions options = Trusting();
  options.certificate = all.client.file();
  options.key = all.client.key_file();
  ASSERT_EQ(Connect(options, {.wants_certificate = true}), "connected");
  client_.Write("ping");
  Work();
  EXPECT_EQ(server_->received, "ping");
  EXPECT_EQ(client_.broken, 0);
}

TEST_F(TlsTest, SaysThatTheServerWantsACertificate) {
  EXPECT_EQ(Connect(Trusting(), {.version = TLS1_2_VERSION, .wants_certificate = true}),
            "the TLS handshake failed: sslv3 alert handshake failure");
  // Since 1.3 a server looks at it only when the client is done.
  EXPECT_EQ(Connect(Trusting(), {.wants_certificate = true}), "connected");
  EXPECT_EQ(client_.broken, 1);
  EXPECT_EQ(client_.why, "tlsv13 alert certificate required");
}

TEST_F(TlsTest, DoesNotSpeakWithServersOfThePast) {
  EXPECT_EQ(Connect(Trusting(), {.version = TLS1_1_VERSION}),
            "the TLS handshake failed: tlsv1 alert protocol version");
}

TEST_F(TlsTest, SuspectsThatAServerDoesNotSpeakTls) {
  Begin(Trusting());
  far().Send("-ERR unknown command\r\n");
  EXPECT_EQ(outcome_,
            "the TLS handshake failed: wrong version number; is it TLS that is spoken there?");
}

TEST_F(TlsTest, TellsOfAConnectionThatFails) {
  const auto context = TlsClientContext::Make(Trusting());
  client_.stream = ConnectTls(loop_, At("redis.test"), *context, [this](const Result<void>& done) {
    outcome_ = done.error().message;
  });
  loop_.attempts.back()->Refuse("No route to host");
  EXPECT_EQ(outcome_, "No route to host");
}

TEST_F(TlsTest, TellsOfAnEndDuringTheHandshake) {
  const std::string expected = "the server ended the connection during the TLS handshake";
  Begin(Trusting());
  far().FinishSending();
  EXPECT_EQ(std::exchange(outcome_, {}), expected);
  Begin(Trusting());
  far().Break();
  EXPECT_EQ(std::exchange(outcome_, {}), expected);
}

TEST_F(TlsTest, MayBeEndedAtAnyTime) {
  Begin(Trusting());
  client_.stream.reset();
  EXPECT_TRUE(far().closed);
  EXPECT_EQ(outcome_, "");

  const auto context = TlsClientContext::Make(Trusting());
  std::unique_ptr<Stream> stream;
  stream =
      ConnectTls(loop_, At("redis.test"), *context, [&](const Result<void>&) { stream.reset(); });
  attempt_ = loop_.attempts.back().get();
  server_ = std::make_unique<TlsServer>(far(), ServerOptions{});
  attempt_->Accept();
  Work();
  EXPECT_TRUE(far().closed) << "from within the news that it is connected";

  ASSERT_EQ(Connect(Trusting()), "connected");
  client_.on_read = [&] { client_.stream.reset(); };
  server_->Say("the last straw");
  EXPECT_TRUE(far().closed);
  server_->Work();
  EXPECT_TRUE(server_->said_goodbye);
}

TEST_F(TlsTest, KnowsAFarewellFromAConnectionThatWasCut) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  server_->Say("last words");
  server_->SayGoodbye();
  EXPECT_EQ(std::exchange(client_.text, {}), "last words");
  EXPECT_TRUE(std::exchange(client_.ended, false));
  EXPECT_EQ(client_.broken, 0);

  ASSERT_EQ(Connect(Trusting()), "connected");
  server_->Say("and th");
  far().FinishSending();
  EXPECT_EQ(client_.text, "and th");
  EXPECT_FALSE(client_.ended);
  EXPECT_EQ(client_.broken, 1);
  EXPECT_EQ(client_.why, "the connection was cut off");
  EXPECT_EQ(client_.stream->Write("x"), std::nullopt);
}

TEST_F(TlsTest, TellsOfAHangUpWhileNothingIsRead) {
  client_.reads_on = false;
  ASSERT_EQ(Connect(Trusting()), "connected");
  server_->SayGoodbye();
  ASSERT_TRUE(far().room.empty());
  far().FinishSending();
  EXPECT_TRUE(client_.hung_up);
  EXPECT_EQ(client_.broken, 0);
}

TEST_F(TlsTest, TellsOnceThatItIsBroken) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  far().window = 0;
  client_.Write("hello");
  client_.stream->AwaitWritable();
  far().broken = true;
  far().Open(10);  // Found out by writing,
  EXPECT_EQ(client_.broken, 1);
  far().Break();  // and by reading.
  EXPECT_EQ(client_.broken, 1);
}

TEST_F(TlsTest, FindsForgedBytes) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  const std::size_t before = server_->unsent.size();
  far().Send(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
  EXPECT_EQ(before, 0U);
  EXPECT_EQ(client_.broken, 1);
  EXPECT_EQ(client_.why, "decryption failed or bad record mac");
  EXPECT_EQ(client_.text, "");
}

TEST_F(TlsTest, FinishesWritingWhenAllIsSentAndReadsOn) {
  ASSERT_EQ(Connect(Trusting()), "connected");
  far().window = 3;
  EXPECT_EQ(client_.stream->Write("bye"), 0U);
  client_.stream->FinishWriting();
  EXPECT_FALSE(far().finished);
  far().Open(1000);
  EXPECT_TRUE(far().finished);
  server_->Work();
  EXPECT_EQ(server_->received, "bye");
  EXPECT_TRUE(server_->said_goodbye);
  server_->Say("still here");
  EXPECT_EQ(client_.text, "still here");
}

TEST_F(TlsTest, PassesOnTheUserTimeoutAndThePeer) {
  ASSERT_EQ(Connect(Trusting(), {}, At("192.0.2.7")), "connected");
  client_.stream->SetUserTimeout(100ms);
  EXPECT_EQ(far().user_timeout, 100ms);
  EXPECT_EQ(client_.stream->peer(), "192.0.2.7");
}

std::string ClientComplaint(const TlsClientOptions& options) {
  const auto context = TlsClientContext::Make(options);
  return context ? "" : context.error().message;
}

TEST(TlsClientContext, NamesTheFileThatIsWrong) {
  const TlsClientCertificates& all = TlsClientCertificates::Shared();
  EXPECT_EQ(ClientComplaint({.ca_file = "/nowhere/ca.crt"}),
            "/nowhere/ca.crt has no certificates to trust: No such file or directory");
  EXPECT_EQ(ClientComplaint({.certificate = "/nowhere/client.crt"}),
            "/nowhere/client.crt has no certificate to show: No such file or directory");
  EXPECT_EQ(ClientComplaint({.certificate = all.client.file(), .key = "/nowhere/client.key"}),
            "/nowhere/client.key has no key that can be read: No such file or directory");
  EXPECT_EQ(ClientComplaint({.key = "/nowhere/client.key"}),
            "/nowhere/client.key is a key without a certificate");
  EXPECT_TRUE(ClientComplaint({.ca_file = all.client.key_file()})
                  .starts_with(all.client.key_file() + " has no certificates to trust: "));
  EXPECT_TRUE(ClientComplaint({.certificate = all.client.file(), .key = all.server.key_file()})
                  .starts_with(all.server.key_file() + " is not the certificate's key"));
  // Nobody can be asked for it.
  EXPECT_TRUE(ClientComplaint({.certificate = all.secret.file(), .key = all.secret.key_file()})
                  .starts_with(all.secret.key_file() + " has no key that can be read"));
}

}  // namespace
}  // namespace weir
