#include "net/listening_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <system_error>

#include "net/socket_address.h"

namespace weir {
namespace {

constexpr int kBacklog = 4096;  // The kernel has a bound of its own.

std::unexpected<Error> Failed(const Endpoint& endpoint, const char* what) {
  const ErrorCode code = errno == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kInternal;
  return std::unexpected(Error{
      code, endpoint.ToString() + ": " + what + ": " + std::generic_category().message(errno)});
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* Plain(const auto* address) { return reinterpret_cast<const sockaddr*>(address); }

// True if the path is that of a socket whose owner has gone.
bool IsAbandoned(const sockaddr_un& address) {
  struct stat status{};
  if (lstat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool refused =
      fd >= 0 && connect(fd, Plain(&address), sizeof(address)) != 0 && errno == ECONNREFUSED;
  if (fd >= 0) close(fd);
  return refused;
}

struct Resolved {
  struct Free {
    void operator()(addrinfo* first) const { freeaddrinfo(first); }
  };
  std::unique_ptr<addrinfo, Free> list{};
};

Result<Resolved> Resolve(const Endpoint& endpoint) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int error = getaddrinfo(endpoint.host.c_str(), port.c_str(), &wanted, &found);
  if (error != 0) {
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument, endpoint.ToString() + ": " + gai_strerror(error)});
  }
  Resolved resolved;
  resolved.list.reset(found);
  return resolved;
}

// What a socket is bound to.
SocketAddress BoundTo(int fd) {
  SocketAddress address{.size = sizeof(sockaddr_storage)};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    address = {};
  }
  return address;
}

std::uint16_t PortOf(const SocketAddress& address) {
  if (address.family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

// Of a unix socket; one that is in no file system is written with an @.
std::string PathOf(const SocketAddress& address) {
  const char* const path = reinterpret_cast<const sockaddr_un&>(address.storage).sun_path;
  const std::size_t size = address.size - offsetof(sockaddr_un, sun_path);
  if (size == 0) return "@";
  if (path[0] == '\0') return "@" + std::string(path + 1, size - 1);
  return {path, strnlen(path, size)};
}

int OptionOf(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// Whoever was accepted and is silent is asked now and then whether it is still there: some wait to
// be told something, and a host that vanished says nothing. Connections inherit it.
void AskTheSilent(int fd) {
  constexpr std::array<std::array<int, 3>, 4> kOptions = {{
      {SOL_SOCKET, SO_KEEPALIVE, 1},
      {IPPROTO_TCP, TCP_KEEPIDLE, 60},
      {IPPROTO_TCP, TCP_KEEPINTVL, 15},
      {IPPROTO_TCP, TCP_KEEPCNT, 4},
  }};
  for (const auto& [level, option, value] : kOptions) {
    setsockopt(fd, level, option, &value, sizeof(value));
  }
}

}  // namespace

void ListeningSocket::IgnoreNewcomers() const noexcept {
  // Drops what has SYN and not ACK among the flags of its TCP header.
  constexpr std::uint32_t kFlags = 13;
  constexpr std::uint32_t kSyn = 0x02;
  constexpr std::uint32_t kAck = 0x10;
  std::array<sock_filter, 5> steps = {{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSyn | kAck),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSyn, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
  }};
  const sock_fprog filter{.len = steps.size(), .filter = steps.data()};
  if (endpoint_.is_unix() || is_kept_) return;
  setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

ListeningSocket::~ListeningSocket() {
  if (fd_ < 0) return;
  if (owns_path_) unlink(endpoint_.path.c_str());
  close(fd_);
}

Result<ListeningSocket> ListeningSocket::Open(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return OpenUnix(endpoint);
  // One that shares with nobody finds out whether somebody is there: a second service that was
  // started by mistake would otherwise be given half of the connections.
  Result<ListeningSocket> probe = OpenTcp(endpoint, Sharing::kNo);
  if (!probe) return probe;
  const Endpoint found = probe->endpoint();
  {
    const ListeningSocket closed = std::move(*probe);
  }
  return OpenTcp(found, Sharing::kYes);
}

Result<ListeningSocket> ListeningSocket::OpenUnix(const Endpoint& endpoint) {
  const sockaddr_un address = AddressOf(endpoint.path);
  ListeningSocket opened(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), endpoint);
  if (opened.fd_ < 0) return Failed(endpoint, "socket");
  if (IsAbandoned(address)) unlink(address.sun_path);
  // Nobody but the owner gets in before the mode is set.
  const mode_t mask = umask(0177);
  const int bound = bind(opened.fd_, Plain(&address), sizeof(address));
  umask(mask);
  if (bound != 0) return Failed(endpoint, "bind");
  opened.owns_path_ = true;
  if (chmod(address.sun_path, 0660) != 0) return Failed(endpoint, "chmod");
  if (listen(opened.fd_, kBacklog) != 0) return Failed(endpoint, "listen");
  return opened;
}

Result<ListeningSocket> ListeningSocket::OpenTcp(const Endpoint& endpoint, Sharing sharing) {
  const Result<Resolved> resolved = Resolve(endpoint);
  if (!resolved) return std::unexpected(resolved.error());
  const addrinfo& address = *resolved->list;
  ListeningSocket opened(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                         endpoint);
  if (opened.fd_ < 0) return Failed(endpoint, "socket");
  const int on = 1;
  setsockopt(opened.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (sharing == Sharing::kYes) setsockopt(opened.fd_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  AskTheSilent(opened.fd_);
  if (bind(opened.fd_, address.ai_addr, address.ai_addrlen) != 0) return Failed(endpoint, "bind");
  // What only looks does not take anybody's connection.
  if (sharing == Sharing::kYes && listen(opened.fd_, kBacklog) != 0) {
    return Failed(endpoint, "listen");
  }
  opened.endpoint_.port = PortOf(BoundTo(opened.fd_));
  return opened;
}

Result<ListeningSocket> ListeningSocket::Adopt(int fd) {
  const SocketAddress address = BoundTo(fd);
  const bool is_unix = address.family() == AF_UNIX;
  const bool is_known = is_unix || address.family() == AF_INET || address.family() == AF_INET6;
  if (!is_known || OptionOf(fd, SO_TYPE) != SOCK_STREAM || OptionOf(fd, SO_ACCEPTCONN) != 1) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument,
                                 "descriptor " + std::to_string(fd) +
                                     " is not a socket that listens on TCP or a unix path"});
  }
  Endpoint endpoint;
  if (is_unix) {
    endpoint.path = PathOf(address);
  } else {
    endpoint.host = address.ToText();
    endpoint.port = PortOf(address);
  }
  ListeningSocket adopted(fd, std::move(endpoint));
  adopted.is_kept_ = true;
  if (!is_unix) AskTheSilent(fd);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return adopted;
}

Result<ListeningSocket> ListeningSocket::Another() const {
  if (!endpoint_.is_unix() && !is_kept_) return OpenTcp(endpoint_, Sharing::kYes);
  const int copy = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return Failed(endpoint_, "dup");
  ListeningSocket another(copy, endpoint_);
  another.is_kept_ = is_kept_;
  return another;
}

bool ListeningSocket::IsAt(const Endpoint& endpoint) const {
  if (endpoint.is_unix() || endpoint_.is_unix()) return endpoint.path == endpoint_.path;
  const Result<std::vector<SocketAddress>> addresses = LookUpNow(endpoint);
  if (!addresses) return false;
  return std::ranges::any_of(*addresses, [&](const SocketAddress& address) {
    return address.ToText() == endpoint_.host && endpoint.port == endpoint_.port;
  });
}

bool ListeningSocket::is_loopback() const noexcept {
  if (endpoint_.is_unix()) return true;
  const SocketAddress address = BoundTo(fd_);
  if (address.family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr);
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  return address.size > 0 && (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
}

}  // namespace weir
