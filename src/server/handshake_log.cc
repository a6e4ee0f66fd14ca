#include "server/handshake_log.h"

#include <utility>

namespace weir {

void HandshakeLog::Note(SteadyTime now, const TlsFailure& failure) {
  std::uint64_t others = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (now < silent_until_) {
      ++unsaid_;
      return;
    }
    silent_until_ = now + kSilence;
    others = std::exchange(unsaid_, 0);
  }
  std::string text = "listen: " + protocol_ + ": TLS handshake failed";
  if (!failure.peer.empty()) text += " with " + std::string(failure.peer);
  text += ": " + failure.why;
  if (others > 0) text += " (and " + std::to_string(others) + " since the last such line)";
  log_.Warn(text);
}

}  // namespace weir
