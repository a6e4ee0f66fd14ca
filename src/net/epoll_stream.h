// A stream on a socket that an epoll loop watches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "net/loop.h"
#include "net/reactor.h"

namespace weir {

class EpollStream final : public Stream, private Watcher {
 public:
  // Of a socket that is connected and does not block. It is the stream's from now on.
  EpollStream(Reactor& reactor, int fd, std::string peer);
  EpollStream(const EpollStream&) = delete;
  EpollStream& operator=(const EpollStream&) = delete;
  ~EpollStream() override;

  // One that is being connected, as Loop::Connect has it. `error` is that of an attempt which has
  // failed already, or 0.
  using Connected = std::function<void(Result<void>)>;
  static std::unique_ptr<Stream> Connecting(Reactor& reactor, const Endpoint& endpoint,
                                            Connected connected);

  void SetHandler(StreamHandler& handler) noexcept override { handler_ = &handler; }
  void Read(std::span<char> room) noexcept override;
  std::optional<std::size_t> Write(std::string_view bytes) noexcept override;
  void AwaitWritable() noexcept override { Want(wanted_ | kWritable); }
  void FinishWriting() noexcept override;
  void SetUserTimeout(Duration longest) noexcept override;
  std::string_view peer() const noexcept override { return peer_; }

 private:
  static constexpr std::uint32_t kReadable = EPOLLIN;
  static constexpr std::uint32_t kWritable = EPOLLOUT;
  static constexpr std::uint32_t kHangUp = EPOLLRDHUP;

  void OnEvents(std::uint32_t events) noexcept override;
  void ReadNow() noexcept;
  void Conclude(int error) noexcept;
  // What epoll is asked for; free if it is that already.
  void Want(std::uint32_t events) noexcept;

  Reactor& reactor_;
  const int fd_;
  const std::string peer_;
  StreamHandler* handler_ = nullptr;
  std::span<char> room_{};  // Of the read that is under way.
  std::uint32_t wanted_ = 0;
  Connected connected_{};  // While it is being connected.
  Reactor::TimerTask failing_{};
};

}  // namespace weir
