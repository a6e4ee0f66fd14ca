// The load generator's end of connections over loopback, by nothing but system calls.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::bench {

// A TCP connection to 127.0.0.1. Moved, not copied; closed at the end.
class Socket {
 public:
  // From the address 127.0.0.`source`. Ends the process if that cannot be had.
  explicit Socket(std::uint16_t port, int source = 1);
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket& operator=(Socket&&) = delete;

  int fd() const noexcept { return fd_; }
  // All of it, or the process ends: batches are small beside a socket's buffer.
  void Send(std::string_view bytes) const;
  // What has arrived, at least one byte; nothing if nothing has.
  std::string_view Receive(std::span<char> buffer) const;
  // The same, but waits. Ends the process when nothing comes for 5 seconds.
  std::string_view Await(std::span<char> buffer) const;
  // Whether the other end has neither closed nor broken the connection.
  bool IsOpen() const noexcept;

 private:
  int fd_;
};

// Which of many sockets have something to read. Never waits: a generator that sleeps would have to
// be woken by the server, at the server's cost.
class Readiness {
 public:
  Readiness();
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  void Watch(const Socket& socket, std::uint32_t tag);
  // Of those that are ready, some.
  std::span<const epoll_event> Poll();

 private:
  static constexpr std::size_t kMost = 64;

  int fd_;
  epoll_event events_[kMost];
};

}  // namespace weir::bench
