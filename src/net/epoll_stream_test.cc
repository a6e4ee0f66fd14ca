#include "net/epoll_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "net/loopback_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

SocketAddress AddressOf(const Endpoint& endpoint) { return AddressWithoutLookup(endpoint).value(); }

class EpollStreamTest : public testing::Test {
 protected:
  // What became of an attempt to reach any of them.
  std::string Connect(std::vector<SocketAddress> addresses) {
    std::string outcome;
    stream_ = EpollStream::ConnectingToAny(reactor_, std::move(addresses), [&](Result<void> done) {
      outcome = done ? "connected" : done.error().message;
      reactor_.Stop();
    });
    reactor_.Run();
    return outcome;
  }

  Reactor reactor_{SystemClock::Shared()};
  std::unique_ptr<Stream> stream_;
};

TEST_F(EpollStreamTest, TriesTheAddressesOfANameInTurn) {
  const SocketAddress closed = AddressOf(OnLoopback().endpoint());
  const ListeningSocket open = OnLoopback("127.0.0.2:0");
  EXPECT_EQ(Connect({closed, AddressOf({.path = "/nowhere/at/all"}), AddressOf(open.endpoint())}),
            "connected");
  EXPECT_EQ(stream_->peer(), "127.0.0.2");
}

TEST_F(EpollStreamTest, SaysWhatWasWrongWithTheLastAddress) {
  const SocketAddress closed = AddressOf(OnLoopback().endpoint());
  EXPECT_EQ(Connect({AddressOf({.path = "/nowhere/at/all"}), closed}), "Connection refused");
}

TEST_F(EpollStreamTest, GivesUpAnAddressThatDoesNotAnswerIfThereIsAnother) {
  // Nobody takes connections from there, so that further ones are not answered.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in mute{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof(mute);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&mute), size), 0);
  ASSERT_EQ(listen(fd, 0), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&mute), &size), 0);
  const SocketAddress address = AddressOf({.host = "127.0.0.1", .port = ntohs(mute.sin_port)});
  std::vector<std::unique_ptr<Stream>> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.push_back(EpollStream::ConnectingToAny(reactor_, {address}, [](Result<void>) {}));
  }
  const ListeningSocket open = OnLoopback("127.0.0.2:0");
  EXPECT_EQ(Connect({address, AddressOf(open.endpoint())}), "connected");
  EXPECT_EQ(stream_->peer(), "127.0.0.2");
  crowd.clear();
  close(fd);
}

// Stops the loop when the connection is lost.
class Waiting final : public StreamHandler {
 public:
  explicit Waiting(Reactor& reactor) : reactor_(reactor) {}
  void OnRead(std::size_t) noexcept override { ADD_FAILURE(); }
  void OnHangUp() noexcept override { ADD_FAILURE(); }
  void OnWritable() noexcept override { ADD_FAILURE(); }
  void OnBroken() noexcept override {
    broken = true;
    reactor_.Stop();
  }
  bool broken = false;

 private:
  Reactor& reactor_;
};

TEST_F(EpollStreamTest, KnowsWhyItIsBroken) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  EpollStream stream(reactor_, ends[0], "");
  Waiting waiting(reactor_);
  stream.SetHandler(waiting);
  std::array<char, 8> room{};
  stream.Read(room);
  EXPECT_EQ(stream.Write("unread"), 6U);
  close(ends[1]);  // With something unread, which is an error to whoever sent it.
  EXPECT_EQ(stream.why_broken(), "");
  reactor_.Run();
  EXPECT_TRUE(waiting.broken);
  EXPECT_EQ(stream.why_broken(), "Connection reset by peer");
}

TEST_F(EpollStreamTest, SetsHowLongDataMayStayUnacknowledged) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  EpollStream stream(reactor_, fd, "");
  stream.SetUserTimeout(100ms);
  unsigned milliseconds = 0;
  socklen_t size = sizeof(milliseconds);
  ASSERT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size), 0);
  EXPECT_EQ(milliseconds, 100U);
}

}  // namespace
}  // namespace weir
