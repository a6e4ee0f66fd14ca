#include "server/signals.h"

#include <pthread.h>
#include <time.h>

#include <initializer_list>

namespace weir {

Signals::Signals() {
  sigemptyset(&ours_);
  for (const int signal : {SIGHUP, SIGTERM, SIGINT}) sigaddset(&ours_, signal);
  pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

Signals::~Signals() {
  // One that came again while the service was ending would end it by force at its last step.
  constexpr timespec kNow{};
  while (sigtimedwait(&ours_, nullptr, &kNow) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Signal Signals::Wait() const {
  int signal = 0;
  while (sigwait(&ours_, &signal) != 0) {
  }
  return signal == SIGHUP ? Signal::kReload : Signal::kStop;
}

}  // namespace weir
