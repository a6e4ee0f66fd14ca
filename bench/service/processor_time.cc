#include "processor_time.h"

#include <ctime>

#include "harness/require.h"

namespace weir::bench {

Duration ProcessorTime(pid_t process) {
  // Finer than /proc, which counts in ticks or is a tick behind for a process that runs.
  clockid_t clock{};
  timespec time{};
  Require(clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &time) == 0,
          "the server runs");
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

}  // namespace weir::bench
