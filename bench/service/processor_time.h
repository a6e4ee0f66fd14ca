// How long a process has been on a processor, from the kernel.
#pragma once

#include <sys/types.h>

#include <weir/time.h>

namespace weir::bench {

// All of its threads together, user and system time, to the nanosecond and to this moment. Ends
// the process if there is no such process.
Duration ProcessorTime(pid_t process);

}  // namespace weir::bench
