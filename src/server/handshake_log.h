// What is said of clients whose TLS handshakes fail: that they do, but not each time, because
// anybody who can connect can make one fail.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <weir/time.h>

#include "net/tls_server.h"
#include "server/log.h"

namespace weir {

// Of one listener. May be used from any thread.
class HandshakeLog {
 public:
  HandshakeLog(const Log& log, std::string protocol) : log_(log), protocol_(std::move(protocol)) {}

  // A line at most once a minute, with how many there were that nothing was said of.
  void Note(SteadyTime now, const TlsFailure& failure);

 private:
  static constexpr Duration kSilence = std::chrono::minutes(1);

  const Log& log_;
  const std::string protocol_;
  std::mutex mutex_;
  SteadyTime silent_until_ = SteadyTime::min();
  std::uint64_t unsaid_ = 0;
};

}  // namespace weir
