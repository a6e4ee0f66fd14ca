// A stream on a socket that an epoll loop watches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/loop.h"
#include "net/mailbox.h"
#include "net/reactor.h"
#include "net/resolver.h"

namespace weir {

class EpollStream final : public Stream, private Watcher {
 public:
  // Of a socket that is connected and does not block. It is the stream's from now on.
  EpollStream(Reactor& reactor, int fd, std::string peer);
  EpollStream(const EpollStream&) = delete;
  EpollStream& operator=(const EpollStream&) = delete;
  ~EpollStream() override;

  // One that is being connected, as Loop::Connect has it. `mailbox` leads to the reactor's loop.
  using Connected = std::function<void(Result<void>)>;
  static std::unique_ptr<Stream> Connecting(Reactor& reactor, std::shared_ptr<Mailbox> mailbox,
                                            const Endpoint& endpoint, Connected connected);
  // To the first of them that answers, tried one after the other.
  static std::unique_ptr<Stream> ConnectingToAny(Reactor& reactor,
                                                 std::vector<SocketAddress> addresses,
                                                 Connected connected);

  void SetHandler(StreamHandler& handler) noexcept override { handler_ = &handler; }
  void Read(std::span<char> room) noexcept override;
  std::optional<std::size_t> Write(std::string_view bytes) noexcept override;
  void AwaitWritable() noexcept override { Want(wanted_ | kWritable); }
  void FinishWriting() noexcept override;
  void SetUserTimeout(Duration longest) noexcept override;
  std::string_view why_broken() const noexcept override { return why_broken_; }
  std::string_view peer() const noexcept override { return peer_; }

 private:
  static constexpr std::uint32_t kReadable = EPOLLIN;
  static constexpr std::uint32_t kWritable = EPOLLOUT;
  static constexpr std::uint32_t kHangUp = EPOLLRDHUP;
  // An address that says nothing for so long gives way to the next, if there is one.
  static constexpr Duration kPatience = std::chrono::milliseconds(50);

  // What there is only while it is being connected.
  struct Attempt {
    Connected connected{};
    std::unique_ptr<Resolver::Question> question{};
    std::vector<SocketAddress> addresses{};
    std::size_t next = 0;  // Of them.
    Error error{};         // Of the last one tried.
    Reactor::TimerTask timer{};
    SteadyTime due{};
  };

  EpollStream(Reactor& reactor, Connected connected);
  void OnFound(const Resolver::Addresses& found);
  // Tries the next address, and those after it as long as they fail at once.
  void TryNext();
  bool Try(const SocketAddress& address);
  void StartTimer(SteadyTime due, std::function<void()> task);
  void StopTimer() noexcept;
  void CloseSocket() noexcept;
  void Conclude(Result<void> result);

  void OnEvents(std::uint32_t events) noexcept override;
  void OnAttemptEvents();
  void ReadNow() noexcept;
  void TellBroken(int error) noexcept;
  // What epoll is asked for; free if it is that already.
  void Want(std::uint32_t events) noexcept;

  Reactor& reactor_;
  int fd_ = -1;  // None while there is no address to go to.
  std::string peer_;
  StreamHandler* handler_ = nullptr;
  std::span<char> room_{};  // Of the read that is under way.
  std::uint32_t wanted_ = 0;
  std::unique_ptr<Attempt> attempt_{};
  std::string why_broken_{};
};

}  // namespace weir
