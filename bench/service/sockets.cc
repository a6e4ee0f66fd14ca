#include "sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/require.h"

namespace weir::bench {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "benchmark: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

sockaddr_in Loopback(std::uint16_t port, int last) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(0x7f000000U + static_cast<std::uint32_t>(last));
  return address;
}

}  // namespace

Socket::Socket(std::uint16_t port, int source) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  if (fd_ < 0) Fail("socket");
  const int on = 1;
  const sockaddr_in from = Loopback(0, source);
  const sockaddr_in to = Loopback(port, 1);
  // Or ports would be taken before it is known to whom they lead, and soon be used up.
  setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) Fail("bind");
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) Fail("connect");
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

void Socket::Send(std::string_view bytes) const {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) Fail("send");
  Require(static_cast<std::size_t>(sent) == bytes.size(), "the server reads what it is sent");
}

std::string_view Socket::Receive(std::span<char> buffer) const {
  const ssize_t received = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (received < 0 && errno == EAGAIN) return {};
  if (received < 0) Fail("receive");
  Require(received > 0, "the server does not close connections");
  return {buffer.data(), static_cast<std::size_t>(received)};
}

std::string_view Socket::Await(std::span<char> buffer) const {
  constexpr int kPatienceMs = 5'000;
  pollfd wanted{.fd = fd_, .events = POLLIN, .revents = 0};
  Require(poll(&wanted, 1, kPatienceMs) == 1, "the server answers");
  return Receive(buffer);
}

bool Socket::IsOpen() const noexcept {
  char byte = 0;
  const ssize_t received = recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return received > 0 || (received < 0 && errno == EAGAIN);
}

Readiness::Readiness() : fd_(epoll_create1(0)) {
  if (fd_ < 0) Fail("epoll");
}

Readiness::~Readiness() { close(fd_); }

void Readiness::Watch(const Socket& socket, std::uint32_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = tag;
  if (epoll_ctl(fd_, EPOLL_CTL_ADD, socket.fd(), &event) != 0) Fail("epoll");
}

std::span<const epoll_event> Readiness::Poll() {
  const int ready = epoll_wait(fd_, events_, kMost, 0);
  if (ready < 0 && errno != EINTR) Fail("epoll");
  return {events_, static_cast<std::size_t>(ready < 0 ? 0 : ready)};
}

}  // namespace weir::bench
