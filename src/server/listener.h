// One listener of the policy, and what of it may change while it listens: its tokens, the right to
// manage, its certificates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <weir/clock.h>
#include <weir/policy_spec.h>

#include "server/handshake_log.h"
#include "server/log.h"
#include "server/tls_files.h"
#include "server/worker.h"

namespace weir {

// May be used by one thread at a time, but for its TLS's metrics and the log of handshakes.
class Listener {
 public:
  // Paths are found in `folder`. The log must outlive it.
  Listener(std::string protocol, std::string folder, const Log& log);

  // Reads all it needs, for the first time.
  Result<void> Begin(const ListenerSpec& spec, ManageRight manage);
  // Where it listens, and whether only this machine reaches it.
  struct Place {
    std::string address;
    bool is_loopback = false;
  };
  // What to begin with, once it has a place.
  Credentials Settle(const Place& place);

  // What a changed policy says about it, but for where it listens and whether it speaks TLS.
  void Adopt(const ListenerSpec& spec, ManageRight manage);
  // Reads everything again: what to use from now on, if that has changed. What cannot be used
  // changes nothing, and is said in the log: `at_once`, or when it has lasted and only once.
  std::optional<Credentials> Refresh(const Now& now, bool at_once);

  const std::string& protocol() const noexcept { return protocol_; }
  // None if it speaks in the clear.
  const TlsFiles* tls() const noexcept { return tls_ ? &*tls_ : nullptr; }
  HandshakeLog& handshake_log() noexcept { return handshake_log_; }
  // Those it reads.
  std::vector<std::string> Files() const;
  // What a person should know about it.
  std::vector<std::string> Warnings(WallTime now) const;

 private:
  Result<Access> ReadAccess() const;
  bool MayAllManage() const noexcept;
  // Whether there is something new.
  bool RefreshAccess(bool at_once);
  bool RefreshTls(SteadyTime now, bool at_once);
  std::string PathOf(const std::string& file) const;
  Result<std::string> ReadToken(const std::string& source) const;
  void Say(Log::Level level, const std::string& text) const;

  const std::string protocol_;  // http
  const std::string folder_;
  const Log& log_;
  HandshakeLog handshake_log_;
  ListenerSpec spec_{};
  ManageRight manage_{};
  Place place_{};
  Credentials credentials_{};
  std::optional<TlsFiles> tls_{};
  std::string complaint_{};  // About its tokens, as it was said last.
};

}  // namespace weir
