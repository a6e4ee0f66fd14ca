#include "server/supervisor.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "limit/limit_words.h"
#include "server/environment.h"

namespace weir {
namespace {

constexpr timeval kLongestWait{.tv_sec = 5, .tv_usec = 0};

// A path, or with an @ a name that is in no file system.
std::optional<std::string> AddressOf(std::string_view name) {
  sockaddr_un address{};
  const bool is_known = name.starts_with('/') || name.starts_with('@');
  if (!is_known || name.size() < 2 || name.size() >= sizeof(address.sun_path)) return std::nullopt;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.starts_with('@')) address.sun_path[0] = '\0';
  // The length is part of a name that is in no file system.
  return std::string(reinterpret_cast<const char*>(&address),
                     offsetof(sockaddr_un, sun_path) + name.size());
}

// Half of what is asked for. None if it is not asked of this process.
std::optional<Duration> AliveEvery(std::string_view microseconds, std::string_view pid) {
  // A week: nobody waits longer to find out that something hangs.
  constexpr std::uint64_t kMost = std::uint64_t{7} * 24 * 3600 * 1'000'000;
  const std::optional<std::uint64_t> patience = ParseNumber(microseconds);
  if (!patience || *patience == 0) return std::nullopt;
  if (!pid.empty() && !IsThisProcess(pid)) return std::nullopt;
  return Duration(std::chrono::microseconds(std::min(*patience, kMost))) / 2;
}

}  // namespace

Supervisor::Supervisor(Supervisor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      alive_every_(other.alive_every_) {}

Supervisor::~Supervisor() {
  if (fd_ >= 0) close(fd_);
}

Result<Supervisor> Supervisor::FromEnvironment() {
  const std::string name = TakeVariable("NOTIFY_SOCKET");
  const std::string patience = TakeVariable("WATCHDOG_USEC");
  const std::string pid = TakeVariable("WATCHDOG_PID");
  Supervisor supervisor;
  if (name.empty()) return supervisor;
  std::optional<std::string> address = AddressOf(name);
  if (!address) {
    return std::unexpected(Error{
        ErrorCode::kInvalidArgument,
        "NOTIFY_SOCKET: " + Quoted(name) + " is neither a path nor a name that begins with @"});
  }
  supervisor.address_ = *std::move(address);
  supervisor.fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  // One that does not read what it asked for holds nobody up for ever.
  setsockopt(supervisor.fd_, SOL_SOCKET, SO_SNDTIMEO, &kLongestWait, sizeof(kLongestWait));
  supervisor.alive_every_ = AliveEvery(patience, pid);
  return supervisor;
}

bool Supervisor::Send(std::string_view message) const noexcept {
  if (address_.empty()) return true;
  ssize_t sent = -1;
  do {
    sent = sendto(fd_, message.data(), message.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(address_.data()),
                  static_cast<socklen_t>(address_.size()));
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

bool Supervisor::Ready(std::string_view status) const noexcept {
  std::string message = "READY=1\nSTATUS=" + std::string(status);
  // A line each.
  std::ranges::replace(message.begin() + sizeof("READY=1"), message.end(), '\n', ' ');
  return Send(message);
}

bool Supervisor::Reloading(SteadyTime now) const noexcept {
  const auto microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
  return Send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds.count()));
}

bool Supervisor::Stopping() const noexcept { return Send("STOPPING=1\nSTATUS=draining"); }

bool Supervisor::Alive() const noexcept { return Send("WATCHDOG=1"); }

}  // namespace weir
