#include "net/asio_loop.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace weir {
namespace asio = boost::asio;
namespace {

using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;

// How many connections are taken in before others have their turn.
constexpr int kAcceptsPerTurn = 64;
// How long to wait when there are no descriptors left: someone must leave first.
constexpr Duration kPauseOnExhaustion = std::chrono::milliseconds(50);

std::string TextOf(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    }
  }
  return text.data();
}

// Replies are whole when they are sent; waiting for more would only delay them.
void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // Fails on a unix socket: no matter.
}

}  // namespace

struct AsioLoop::State {
  explicit State(Clock& its_clock) : clock(its_clock) {}

  // Every handler begins with this.
  void BeginTurn() noexcept { has_time = false; }

  Clock& clock;
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  bool has_time = false;
  Now time{};

  class AsioStream;
  class AsioTimer;
  class AsioAcceptor;
};

// What a stream is lives on until the last operation has been told that it was cancelled.
class AsioLoop::State::AsioStream final : public Stream {
 public:
  AsioStream(State& state, Socket socket, std::string peer)
      : core_(new Core(state, std::move(socket))), peer_(std::move(peer)) {}
  AsioStream(const AsioStream&) = delete;
  AsioStream& operator=(const AsioStream&) = delete;
  ~AsioStream() override {
    core_->handler = nullptr;
    core_->ended = true;
    error_code ignored;
    core_->socket.close(ignored);
  }

  void SetHandler(StreamHandler& handler) noexcept override { core_->handler = &handler; }

  void Read(std::span<char> room) noexcept override {
    core_->socket.async_read_some(asio::buffer(room.data(), room.size()),
                                  [core = core_](const error_code& error, std::size_t count) {
                                    core->state.BeginTurn();
                                    if (core->handler == nullptr) return;
                                    if (error == asio::error::eof) return core->handler->OnRead(0);
                                    if (error) return core->handler->OnBroken();
                                    core->handler->OnRead(count);
                                  });
  }

  std::optional<std::size_t> Write(std::string_view bytes) noexcept override {
    const ssize_t sent = send(core_->socket.native_handle(), bytes.data(), bytes.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    return std::nullopt;
  }

  void AwaitWritable() noexcept override {
    core_->socket.async_wait(Socket::wait_write, [core = core_](const error_code& error) {
      core->state.BeginTurn();
      if (core->handler == nullptr) return;
      if (error) return core->handler->OnBroken();
      core->handler->OnWritable();
    });
  }

  void FinishWriting() noexcept override {
    error_code ignored;
    core_->socket.shutdown(Socket::shutdown_send, ignored);
  }

  std::string_view peer() const noexcept override { return peer_; }

  using Connected = std::function<void(Result<void>)>;
  void Connect(const asio::generic::stream_protocol::endpoint& to, Connected connected) {
    core_->socket.async_connect(
        to, [core = core_, connected = std::move(connected)](const error_code& error) {
          core->Conclude(error, connected);
        });
  }
  // The attempt fails in a later turn, as it would have if it had been made.
  void Fail(const error_code& error, Connected connected) {
    asio::post(core_->state.context, [core = core_, error, connected = std::move(connected)] {
      core->Conclude(error, connected);
    });
  }

 private:
  struct Core : boost::intrusive_ref_counter<Core, boost::thread_unsafe_counter> {
    Core(State& its_state, Socket its_socket) : state(its_state), socket(std::move(its_socket)) {}

    void Conclude(const error_code& error, const Connected& connected) {
      state.BeginTurn();
      if (ended) return;
      if (error) return connected(std::unexpected(Error{ErrorCode::kInternal, error.message()}));
      SendAtOnce(socket.native_handle());
      connected({});
    }

    State& state;
    Socket socket;
    StreamHandler* handler = nullptr;
    bool ended = false;
  };
  boost::intrusive_ptr<Core> core_;
  std::string peer_;
};

class AsioLoop::State::AsioTimer final : public Timer {
 public:
  AsioTimer(State& state, std::function<void()> on_due)
      : core_(std::make_shared<Core>(state, std::move(on_due))) {}
  AsioTimer(const AsioTimer&) = delete;
  AsioTimer& operator=(const AsioTimer&) = delete;
  ~AsioTimer() override { Stop(); }

  void Start(Duration after) override {
    const std::uint64_t start = ++core_->starts;
    core_->timer.expires_after(after);
    core_->timer.async_wait([core = core_, start](const error_code&) {
      core->state.BeginTurn();
      // One that was stopped when it was due already must not go off.
      if (core->starts != start) return;
      core->on_due();
    });
  }
  void Stop() noexcept override {
    ++core_->starts;
    core_->timer.cancel();
  }

 private:
  struct Core {
    Core(State& its_state, std::function<void()> its_task)
        : state(its_state), timer(its_state.context), on_due(std::move(its_task)) {}
    State& state;
    asio::steady_timer timer;
    std::function<void()> on_due;
    std::uint64_t starts = 0;
  };
  std::shared_ptr<Core> core_;
};

class AsioLoop::State::AsioAcceptor final : public Acceptor {
 public:
  AsioAcceptor(State& state, ListeningSocket socket, Accepted accepted)
      : core_(std::make_shared<Core>(state, std::move(socket), std::move(accepted))) {
    core_->Wait();
  }
  AsioAcceptor(const AsioAcceptor&) = delete;
  AsioAcceptor& operator=(const AsioAcceptor&) = delete;
  ~AsioAcceptor() override {
    core_->ended = true;
    core_->pause.cancel();
    core_->descriptor.release();  // The listening socket closes itself.
  }

  void AcceptAll() noexcept override {
    while (core_->AcceptOne() == Core::Outcome::kAccepted) {
    }
  }

 private:
  struct Core : std::enable_shared_from_this<Core> {
    Core(State& its_state, ListeningSocket its_socket, Accepted its_accepted)
        : state(its_state),
          listening(std::move(its_socket)),
          descriptor(its_state.context, listening.fd()),
          pause(its_state.context),
          accepted(std::move(its_accepted)) {}

    enum class Outcome : std::uint8_t { kAccepted, kNobodyThere, kExhausted };
    Outcome AcceptOne() noexcept {
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      const int fd = accept4(listening.fd(), reinterpret_cast<sockaddr*>(&address), &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return Outcome::kNobodyThere;
        const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        return full ? Outcome::kExhausted : Outcome::kAccepted;  // Else that one has gone already.
      }
      SendAtOnce(fd);
      Socket socket(state.context);
      error_code error;
      socket.assign(asio::generic::stream_protocol(address.ss_family, 0), fd, error);
      if (error) {
        close(fd);
        return Outcome::kExhausted;
      }
      accepted(std::make_unique<AsioStream>(state, std::move(socket), TextOf(address)));
      return Outcome::kAccepted;
    }

    void Wait() {
      descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                            [core = shared_from_this()](const error_code& error) {
                              core->state.BeginTurn();
                              if (!core->ended && !error) core->AcceptSome();
                            });
    }

    void AcceptSome() {
      for (int i = 0; i < kAcceptsPerTurn; ++i) {
        const Outcome outcome = AcceptOne();
        if (ended) return;
        if (outcome == Outcome::kExhausted) return WaitAWhile();
        if (outcome == Outcome::kNobodyThere) break;
      }
      Wait();
    }

    void WaitAWhile() {
      pause.expires_after(kPauseOnExhaustion);
      pause.async_wait([core = shared_from_this()](const error_code&) {
        if (!core->ended) core->Wait();
      });
    }

    State& state;
    ListeningSocket listening;
    asio::posix::stream_descriptor descriptor;
    asio::steady_timer pause;
    Accepted accepted;
    bool ended = false;
  };
  std::shared_ptr<Core> core_;
};

AsioLoop::AsioLoop(Clock& clock) : state_(std::make_unique<State>(clock)) {}
AsioLoop::~AsioLoop() = default;

Now AsioLoop::now() noexcept {
  if (!std::exchange(state_->has_time, true)) state_->time = state_->clock.Read();
  return state_->time;
}

Now AsioLoop::ReadClock() const noexcept { return state_->clock.Read(); }

void AsioLoop::Post(std::function<void()> task) {
  asio::post(state_->context, [state = state_.get(), task = std::move(task)] {
    state->BeginTurn();
    task();
  });
}

std::unique_ptr<Timer> AsioLoop::MakeTimer(std::function<void()> on_due) {
  return std::make_unique<State::AsioTimer>(*state_, std::move(on_due));
}

std::unique_ptr<Acceptor> AsioLoop::Accept(ListeningSocket socket, Accepted accepted) {
  return std::make_unique<State::AsioAcceptor>(*state_, std::move(socket), std::move(accepted));
}

std::unique_ptr<Stream> AsioLoop::Connect(const Endpoint& endpoint,
                                          std::function<void(Result<void>)> connected) {
  asio::generic::stream_protocol::endpoint to;
  error_code error;
  if (endpoint.is_unix()) {
    to = asio::local::stream_protocol::endpoint(endpoint.path);
  } else {
    asio::ip::tcp::resolver resolver(state_->context);
    const auto found = resolver.resolve(endpoint.host, std::to_string(endpoint.port), error);
    if (!error) to = found.begin()->endpoint();
  }
  auto stream =
      std::make_unique<State::AsioStream>(*state_, Socket(state_->context), endpoint.host);
  if (error) {
    stream->Fail(error, std::move(connected));
  } else {
    stream->Connect(to, std::move(connected));
  }
  return stream;
}

void AsioLoop::Run() { state_->context.run(); }
void AsioLoop::Stop() { state_->context.stop(); }

}  // namespace weir
