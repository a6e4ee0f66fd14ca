#include "net/epoll_loop.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "net/epoll_stream.h"
#include "net/socket_address.h"

namespace weir {
namespace {

// How many connections are taken in before others have their turn.
constexpr int kAcceptsPerTurn = 64;
// How long to wait when there are no descriptors left: someone must leave first.
constexpr Duration kPauseOnExhaustion = std::chrono::milliseconds(50);

class EpollTimer final : public Timer {
 public:
  EpollTimer(Reactor& reactor, std::function<void()> on_due)
      : reactor_(reactor),
        task_(std::make_shared<const std::function<void()>>(std::move(on_due))) {}
  EpollTimer(const EpollTimer&) = delete;
  EpollTimer& operator=(const EpollTimer&) = delete;
  ~EpollTimer() override { Stop(); }

  void Start(Duration after) override {
    Stop();
    due_ = reactor_.Time().steady + after;
    reactor_.AddTimer(due_, task_);
  }
  void Stop() noexcept override { reactor_.RemoveTimer(due_, task_); }

 private:
  Reactor& reactor_;
  const Reactor::TimerTask task_;
  SteadyTime due_{};
};

class EpollAcceptor final : public Acceptor, private Watcher {
 public:
  EpollAcceptor(Reactor& reactor, ListeningSocket socket, EpollLoop::Accepted accepted)
      : reactor_(reactor),
        socket_(std::move(socket)),
        accepted_(std::move(accepted)),
        pause_(reactor, [this] { reactor_.Change(socket_.fd(), *this, EPOLLIN); }) {
    reactor_.Watch(socket_.fd(), *this, EPOLLIN);
  }
  EpollAcceptor(const EpollAcceptor&) = delete;
  EpollAcceptor& operator=(const EpollAcceptor&) = delete;
  ~EpollAcceptor() override { reactor_.Unwatch(socket_.fd(), *this); }

  void AcceptLast() noexcept override {
    if (socket_.is_kept()) {
      // They wait for whoever is given the socket next.
      pause_.Stop();
      return reactor_.Change(socket_.fd(), *this, 0);
    }
    socket_.IgnoreNewcomers();
    while (AcceptOne() == Outcome::kGoOn) {
    }
  }

 private:
  enum class Outcome : std::uint8_t { kGoOn, kNobodyThere, kExhausted };
  Outcome AcceptOne() noexcept {
    SocketAddress address{.size = sizeof(sockaddr_storage)};
    const int fd = accept4(socket_.fd(), reinterpret_cast<sockaddr*>(&address.storage),
                           &address.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      accepted_(std::make_unique<EpollStream>(reactor_, fd, address.ToText()));
      return Outcome::kGoOn;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Outcome::kNobodyThere;
    const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return full ? Outcome::kExhausted : Outcome::kGoOn;  // Else that one has gone already.
  }

  void OnEvents(std::uint32_t) noexcept override {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      const Outcome outcome = AcceptOne();
      if (outcome == Outcome::kExhausted) {
        reactor_.Change(socket_.fd(), *this, 0);
        pause_.Start(kPauseOnExhaustion);
      }
      if (outcome != Outcome::kGoOn) return;
    }
  }

  Reactor& reactor_;
  ListeningSocket socket_;
  EpollLoop::Accepted accepted_;
  EpollTimer pause_;
};

}  // namespace

std::unique_ptr<Timer> EpollLoop::MakeTimer(std::function<void()> on_due) {
  return std::make_unique<EpollTimer>(reactor_, std::move(on_due));
}

std::unique_ptr<Acceptor> EpollLoop::Accept(ListeningSocket socket, Accepted accepted) {
  return std::make_unique<EpollAcceptor>(reactor_, std::move(socket), std::move(accepted));
}

std::unique_ptr<Stream> EpollLoop::Connect(const Endpoint& endpoint,
                                           std::function<void(Result<void>)> connected) {
  return EpollStream::Connecting(reactor_, mailbox_, endpoint, std::move(connected));
}

}  // namespace weir
