#include "net/listening_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace weir {
namespace {

constexpr int kBacklog = 4096;  // The kernel has a bound of its own.

std::unexpected<Error> Failed(const Endpoint& endpoint, const char* what) {
  return std::unexpected(Error{ErrorCode::kInternal, endpoint.ToString() + ": " + what + ": " +
                                                         std::generic_category().message(errno)});
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

// What the system made of port 0.
std::uint16_t PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
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
  if (endpoint_.is_unix()) return;
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
  const int on = 1;
  setsockopt(opened.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (sharing == Sharing::kYes) setsockopt(opened.fd_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  if (bind(opened.fd_, address.ai_addr, address.ai_addrlen) != 0) return Failed(endpoint, "bind");
  // What only looks does not take anybody's connection.
  if (sharing == Sharing::kYes && listen(opened.fd_, kBacklog) != 0) {
    return Failed(endpoint, "listen");
  }
  opened.endpoint_.port = PortOf(opened.fd_);
  return opened;
}

Result<ListeningSocket> ListeningSocket::Another() const {
  if (!endpoint_.is_unix()) return OpenTcp(endpoint_, Sharing::kYes);
  const int copy = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return Failed(endpoint_, "dup");
  return ListeningSocket(copy, endpoint_);
}

bool ListeningSocket::is_loopback() const noexcept {
  if (endpoint_.is_unix()) return true;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  if (address.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr);
  }
  const auto& v4 = *reinterpret_cast<const sockaddr_in*>(&address);
  return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
}

}  // namespace weir
