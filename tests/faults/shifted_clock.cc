// Loaded before a program (LD_PRELOAD), it shifts the program's clocks while that runs: by as many
// nanoseconds as the file named by WEIR_CLOCK_FILE says, the wall clock by its first 8 bytes and
// the steady clock by its next 8, if it has them. The kernel's timeouts are left alone. For servers
// that have no other way to be told a wrong time.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct Shifts {
  std::atomic<std::int64_t> wall;
  std::atomic<std::int64_t> steady;  // Zero where the file ends: the rest of its page is.
};
const Shifts* shifts = nullptr;

// Not by the library's functions: those may be called before it is ready.
__attribute__((constructor)) void MapFile() {
  const char* const path = std::getenv("WEIR_CLOCK_FILE");
  if (path == nullptr) return;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) std::abort();
  void* const page = mmap(nullptr, sizeof(Shifts), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) std::abort();
  shifts = static_cast<const Shifts*>(page);
  close(file);
}

std::int64_t ShiftOf(clockid_t clock) {
  if (shifts == nullptr) return 0;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return shifts->wall.load(std::memory_order_relaxed);
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
      return shifts->steady.load(std::memory_order_relaxed);
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0) {
    const std::int64_t now = time->tv_sec * kSecond + time->tv_nsec + ShiftOf(clock);
    time->tv_sec = now / kSecond;
    time->tv_nsec = now % kSecond;
  }
  return static_cast<int>(result);
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
