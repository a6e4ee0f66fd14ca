// TLS with a server that people run: redis-server, on real sockets.
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/certificates_under_test.h"
#include "net/epoll_loop.h"
#include "net/tls.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

struct RedisCertificates {
  CertificateUnderTest authority{{.file = "redis-authority"}};
  CertificateUnderTest server{{.file = "redis", .names = "DNS:localhost,IP:127.0.0.1"}, &authority};
  CertificateUnderTest client{{.file = "redis-client", .names = "DNS:client.test"}, &authority};
};

// redis-server with TLS on a free port, which wants certificates of its clients.
class RedisWithTls {
 public:
  explicit RedisWithTls(const RedisCertificates& all)
      : port_(ListeningSocket::Open(*Endpoint::Parse("127.0.0.1:0"))->endpoint().port) {
    std::vector<std::string> words = {"redis-server",
                                      "--port",
                                      "0",
                                      "--tls-port",
                                      std::to_string(port_),
                                      "--bind",
                                      "127.0.0.1",
                                      "--tls-cert-file",
                                      all.server.file(),
                                      "--tls-key-file",
                                      all.server.key_file(),
                                      "--tls-ca-cert-file",
                                      all.authority.file(),
                                      "--save",
                                      "",
                                      "--logfile",
                                      "/dev/null"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawnp(&process_, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
      process_ = 0;
    }
  }
  RedisWithTls(const RedisWithTls&) = delete;
  RedisWithTls& operator=(const RedisWithTls&) = delete;
  ~RedisWithTls() {
    if (process_ == 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  bool started() const { return process_ != 0; }
  Endpoint endpoint() const { return {.host = "127.0.0.1", .port = port_}; }

 private:
  std::uint16_t port_;
  pid_t process_ = 0;
};

// Sends one command as soon as somebody listens, and keeps so many bytes of the answer.
class Asking final : public StreamHandler {
 public:
  Asking(EpollLoop& loop, const Endpoint& endpoint, std::shared_ptr<const TlsClientContext> tls)
      : loop_(loop), endpoint_(endpoint), tls_(std::move(tls)) {}

  std::string Ask(std::string_view command, std::size_t expected) {
    outbox_ = command;
    expected_ = expected;
    Connect();
    give_up_->Start(20s);
    loop_.Run();
    return answer_;
  }

  void OnRead(std::size_t count) noexcept override {
    answer_.append(room_.data(), count);
    if (count == 0 || answer_.size() >= expected_) return loop_.Stop();
    stream_->Read(room_);
  }
  void OnHangUp() noexcept override {}
  void OnWritable() noexcept override { Push(); }
  void OnBroken() noexcept override {
    answer_ = stream_->why_broken();
    loop_.Stop();
  }

 private:
  void Connect() {
    stream_ = ConnectTls(loop_, endpoint_, tls_, [this](const Result<void>& done) {
      if (!done && done.error().message == "Connection refused") return retry_->Start(10ms);
      if (!done) {
        answer_ = done.error().message;
        return loop_.Stop();
      }
      stream_->SetHandler(*this);
      stream_->Read(room_);
      Push();
    });
  }
  void Push() {
    outbox_.remove_prefix(stream_->Write(outbox_).value_or(outbox_.size()));
    if (!outbox_.empty()) stream_->AwaitWritable();
  }

  EpollLoop& loop_;
  const Endpoint endpoint_;
  const std::shared_ptr<const TlsClientContext> tls_;
  std::unique_ptr<Timer> retry_ = loop_.MakeTimer([this] { Connect(); });
  std::unique_ptr<Timer> give_up_ = loop_.MakeTimer([this] { loop_.Stop(); });
  std::unique_ptr<Stream> stream_;
  std::array<char, 4096> room_{};
  std::string_view outbox_;
  std::size_t expected_ = 0;
  std::string answer_;
};

TEST(TlsWithRedis, CarriesSmallAndLargeCommandsAndTellsWhatIsMissing) {
  const RedisCertificates all;
  const RedisWithTls redis(all);
  ASSERT_TRUE(redis.started()) << "install redis-server";
  const auto ask = [&](const TlsClientOptions& options, std::string_view command,
                       std::size_t expected) {
    EpollLoop loop(SystemClock::Shared());
    return Asking(loop, redis.endpoint(), *TlsClientContext::Make(options)).Ask(command, expected);
  };
  TlsClientOptions options{.ca_file = all.authority.file(),
                           .certificate = all.client.file(),
                           .key = all.client.key_file()};
  EXPECT_EQ(ask(options, "PING\r\n", 7), "+PONG\r\n");
  const std::string much(5'000'000, 'x');
  const std::string size = std::to_string(much.size());
  const std::string bulk = "$" + size + "\r\n" + much + "\r\n";
  EXPECT_TRUE(ask(options, "*2\r\n$4\r\nECHO\r\n" + bulk, bulk.size()) == bulk);
  options.certificate = options.key = "";
  EXPECT_EQ(ask(options, "PING\r\n", 7), "tlsv13 alert certificate required");
  options.server_name = "elsewhere.test";
  EXPECT_EQ(ask(options, "PING\r\n", 7),
            "the server's certificate is not accepted: hostname mismatch, it is not for "
            "elsewhere.test");
}

}  // namespace
}  // namespace weir
