#include "net/epoll_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace weir {
namespace {

// Replies are whole when they are sent; waiting for more would only delay them.
void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // Fails on a unix socket: no matter.
}

int PendingError(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

Error ErrorOf(int number) {
  return {ErrorCode::kInternal, std::generic_category().message(number)};
}

}  // namespace

EpollStream::EpollStream(Reactor& reactor, int fd, std::string peer)
    : reactor_(reactor), fd_(fd), peer_(std::move(peer)) {
  SendAtOnce(fd_);
  reactor_.Watch(fd_, *this, 0);
}

EpollStream::EpollStream(Reactor& reactor, Connected connected)
    : reactor_(reactor), attempt_(std::make_unique<Attempt>()) {
  attempt_->connected = std::move(connected);
}

EpollStream::~EpollStream() {
  if (attempt_ != nullptr) StopTimer();
  CloseSocket();
}

std::unique_ptr<Stream> EpollStream::Connecting(Reactor& reactor, std::shared_ptr<Mailbox> mailbox,
                                                const Endpoint& endpoint, Connected connected) {
  if (const std::optional<SocketAddress> address = AddressWithoutLookup(endpoint)) {
    return ConnectingToAny(reactor, {*address}, std::move(connected));
  }
  std::unique_ptr<EpollStream> stream(new EpollStream(reactor, std::move(connected)));
  stream->attempt_->question = Resolver::Shared().Ask(
      endpoint, std::move(mailbox),
      [asking = stream.get()](const Resolver::Addresses& found) { asking->OnFound(found); });
  return stream;
}

std::unique_ptr<Stream> EpollStream::ConnectingToAny(Reactor& reactor,
                                                     std::vector<SocketAddress> addresses,
                                                     Connected connected) {
  std::unique_ptr<EpollStream> stream(new EpollStream(reactor, std::move(connected)));
  stream->attempt_->addresses = std::move(addresses);
  stream->TryNext();
  return stream;
}

void EpollStream::OnFound(const Resolver::Addresses& found) {
  if (!found) return Conclude(std::unexpected(found.error()));
  attempt_->addresses = *found;
  TryNext();
}

void EpollStream::TryNext() {
  CloseSocket();
  Attempt& attempt = *attempt_;
  while (attempt.next < attempt.addresses.size()) {
    if (!Try(attempt.addresses[attempt.next++])) continue;
    if (attempt.next == attempt.addresses.size()) return;
    return StartTimer(reactor_.Time().steady + kPatience, [this] { TryNext(); });
  }
  // It fails in a later turn, as it would have if it had taken longer to find out.
  StartTimer({}, [this] { Conclude(std::unexpected(attempt_->error)); });
}

bool EpollStream::Try(const SocketAddress& address) {
  fd_ = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // A unix socket whose queue is full says EAGAIN, and never that it is no longer full.
  if (fd_ < 0 || (connect(fd_, address.data(), address.size) != 0 && errno != EINPROGRESS)) {
    attempt_->error = ErrorOf(errno);
    if (fd_ >= 0) close(std::exchange(fd_, -1));
    return false;
  }
  SendAtOnce(fd_);
  peer_ = address.ToText();
  wanted_ = kWritable;
  reactor_.Watch(fd_, *this, wanted_);
  return true;
}

void EpollStream::StartTimer(SteadyTime due, std::function<void()> task) {
  StopTimer();
  attempt_->due = due;
  attempt_->timer = std::make_shared<const std::function<void()>>(std::move(task));
  reactor_.AddTimer(due, attempt_->timer);
}

void EpollStream::StopTimer() noexcept {
  if (attempt_->timer != nullptr) reactor_.RemoveTimer(attempt_->due, attempt_->timer);
  attempt_->timer = nullptr;
}

void EpollStream::CloseSocket() noexcept {
  if (fd_ < 0) return;
  reactor_.Unwatch(fd_, *this);
  close(std::exchange(fd_, -1));
}

void EpollStream::OnAttemptEvents() {
  const int error = PendingError(fd_);
  if (error == 0) return Conclude({});
  attempt_->error = ErrorOf(error);
  TryNext();
}

void EpollStream::Conclude(Result<void> result) {
  if (fd_ >= 0) Want(0);
  StopTimer();
  const std::unique_ptr<Attempt> attempt = std::move(attempt_);
  attempt->connected(std::move(result));
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
  why_broken_ = ErrorOf(errno).message;
  return std::nullopt;
}

void EpollStream::FinishWriting() noexcept { shutdown(fd_, SHUT_WR); }

void EpollStream::SetUserTimeout(Duration longest) noexcept {
  const auto milliseconds = static_cast<unsigned>(RoundUpTo<std::chrono::milliseconds>(longest));
  setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

void EpollStream::OnEvents(std::uint32_t events) noexcept {
  if (attempt_ != nullptr) return OnAttemptEvents();
  if (handler_ == nullptr) return;  // Nobody to tell.
  constexpr std::uint32_t kEnd = EPOLLERR | EPOLLHUP;
  // One event a turn: its handler may end the stream, and epoll says the other again.
  if ((events & (kWritable | kEnd)) != 0 && (wanted_ & kWritable) != 0) {
    Want(wanted_ & ~kWritable);
    return handler_->OnWritable();
  }
  if ((events & (kReadable | kHangUp | kEnd)) == 0) return;
  if (!room_.empty()) return ReadNow();
  // Nobody wants to read now; that the peer has gone is told all the same, and would be for ever.
  if ((events & kEnd) != 0) return TellBroken(PendingError(fd_));
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
    return TellBroken(errno);
  }
  room_ = {};
  handler_->OnRead(static_cast<std::size_t>(count));
}

void EpollStream::TellBroken(int error) noexcept {
  if (error != 0) why_broken_ = ErrorOf(error).message;
  handler_->OnBroken();
}

}  // namespace weir
