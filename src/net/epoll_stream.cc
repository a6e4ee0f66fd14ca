#include "net/epoll_stream.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace weir {
namespace {

// Where a connection goes, as the system has it.
struct Destination {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// None if the name is not known.
std::optional<Destination> Find(const Endpoint& endpoint) {
  Destination destination;
  if (endpoint.is_unix()) {
    auto& address = reinterpret_cast<sockaddr_un&>(destination.address);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, endpoint.path.data(), endpoint.path.size());
    destination.size = sizeof(sockaddr_un);
    return destination;
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (getaddrinfo(endpoint.host.c_str(), port.c_str(), &wanted, &found) != 0) return std::nullopt;
  std::memcpy(&destination.address, found->ai_addr, found->ai_addrlen);
  destination.size = found->ai_addrlen;
  freeaddrinfo(found);
  return destination;
}

// Replies are whole when they are sent; waiting for more would only delay them.
void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // Fails on a unix socket: no matter.
}

}  // namespace

EpollStream::EpollStream(Reactor& reactor, int fd, std::string peer)
    : reactor_(reactor), fd_(fd), peer_(std::move(peer)) {
  SendAtOnce(fd_);
  reactor_.Watch(fd_, *this, 0);
}

EpollStream::~EpollStream() {
  if (failing_ != nullptr) reactor_.RemoveTimer({}, failing_);
  reactor_.Unwatch(fd_, *this);
  close(fd_);
}

std::unique_ptr<Stream> EpollStream::Connecting(Reactor& reactor, const Endpoint& endpoint,
                                                Connected connected) {
  const std::optional<Destination> to = Find(endpoint);
  const int family = to ? to->address.ss_family : AF_INET;
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  auto stream = std::make_unique<EpollStream>(reactor, fd, endpoint.host);
  stream->connected_ = std::move(connected);
  int error = EHOSTUNREACH;
  if (to) {
    const bool done = connect(fd, reinterpret_cast<const sockaddr*>(&to->address), to->size) == 0;
    error = done || errno == EINPROGRESS ? 0 : errno;
  }
  if (error == 0) {
    stream->Want(kWritable);
    return stream;
  }
  // It fails in a later turn, as it would have if it had taken longer to find out.
  stream->failing_ = std::make_shared<const std::function<void()>>(
      [failed = stream.get(), error] { failed->Conclude(error); });
  reactor.AddTimer({}, stream->failing_);
  return stream;
}

void EpollStream::Conclude(int error) noexcept {
  Want(0);
  failing_ = nullptr;
  const Connected connected = std::exchange(connected_, {});
  if (error == 0) return connected({});
  connected(std::unexpected(Error{ErrorCode::kInternal, std::generic_category().message(error)}));
}

void EpollStream::Want(std::uint32_t events) noexcept {
  if (std::exchange(wanted_, events) != events) reactor_.Change(fd_, *this, events);
}

void EpollStream::Read(std::span<char> room) noexcept {
  room_ = room;
  Want((wanted_ | kReadable) & ~kHangUp);
}

std::optional<std::size_t> EpollStream::Write(std::string_view bytes) noexcept {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  return std::nullopt;
}

void EpollStream::FinishWriting() noexcept { shutdown(fd_, SHUT_WR); }

void EpollStream::SetUserTimeout(Duration longest) noexcept {
  const auto milliseconds = static_cast<unsigned>(RoundUpTo<std::chrono::milliseconds>(longest));
  setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

void EpollStream::OnEvents(std::uint32_t events) noexcept {
  if (handler_ == nullptr && !connected_) return;  // Nobody to tell.
  if (failing_ != nullptr) return;                 // It is about to be told.
  if (connected_) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    return Conclude(error);
  }
  constexpr std::uint32_t kEnd = EPOLLERR | EPOLLHUP;
  // One event a turn: its handler may end the stream, and epoll says the other again.
  if ((events & (kWritable | kEnd)) != 0 && (wanted_ & kWritable) != 0) {
    Want(wanted_ & ~kWritable);
    return handler_->OnWritable();
  }
  if ((events & (kReadable | kHangUp | kEnd)) == 0) return;
  if (!room_.empty()) return ReadNow();
  // Nobody wants to read now; that the peer has gone is told all the same, and would be for ever.
  if ((events & kEnd) != 0) return handler_->OnBroken();
  if ((events & kHangUp) != 0) {
    Want(wanted_ & ~(kReadable | kHangUp));
    return handler_->OnHangUp();
  }
  Want((wanted_ & ~kReadable) | kHangUp);
}

void EpollStream::ReadNow() noexcept {
  const ssize_t count = recv(fd_, room_.data(), room_.size(), 0);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
    return handler_->OnBroken();
  }
  room_ = {};
  handler_->OnRead(static_cast<std::size_t>(count));
}

}  // namespace weir
