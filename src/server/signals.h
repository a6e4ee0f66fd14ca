// The signals that steer a service, taken one after the other by one thread that waits for them:
// nothing runs inside a signal handler.
#pragma once

#include <csignal>
#include <cstdint>

namespace weir {

enum class Signal : std::uint8_t {
  kReload,  // SIGHUP
  kStop,    // SIGTERM, SIGINT
};

// To be made before any thread is, because threads inherit which signals are blocked. Blocks them
// as long as it lives. Writing to a connection that is gone, or more than a file may hold, is an
// error to handle, no signal.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  // Waits for the next one.
  Signal Wait() const;

 private:
  sigset_t ours_;
  sigset_t before_;
};

}  // namespace weir
