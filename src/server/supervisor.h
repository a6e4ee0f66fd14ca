// Whoever started this process and wants to know how it fares: systemd, or nobody.
//
// It is told by datagrams to the socket that it named in NOTIFY_SOCKET, lines of NAME=VALUE:
//
//   READY=1 STATUS=...                      serving from now on, or again
//   RELOADING=1 MONOTONIC_USEC=...          about to take up a changed policy
//   STOPPING=1                              about to end
//   WATCHDOG=1                              still well; if that stays away for long, it is started
//   anew
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <weir/result.h>
#include <weir/time.h>

namespace weir {

// May be used from any thread. With nobody to tell, nothing happens.
class Supervisor {
 public:
  // What the environment says, which says it no more then. An error if it names a socket of a kind
  // that there is not.
  [[nodiscard]] static Result<Supervisor> FromEnvironment();

  Supervisor(Supervisor&& other) noexcept;
  Supervisor& operator=(Supervisor&&) = delete;
  ~Supervisor();

  // Each says whether it could be told; true if nobody wants to know.
  bool Ready(std::string_view status) const noexcept;
  bool Reloading(SteadyTime now) const noexcept;
  bool Stopping() const noexcept;
  bool Alive() const noexcept;

  // How often it should be told that all is well: twice in the time after which it loses patience.
  std::optional<Duration> alive_every() const noexcept { return alive_every_; }

 private:
  Supervisor() = default;
  bool Send(std::string_view message) const noexcept;

  int fd_ = -1;
  std::string address_{};  // As a sockaddr_un; empty: nobody.
  std::optional<Duration> alive_every_{};
};

}  // namespace weir
