// Loaded before a program (LD_PRELOAD), it shifts the program's wall clock while that runs: by as
// many nanoseconds as the 8 bytes of the file named by WEIR_CLOCK_FILE say. Steady clocks are left
// alone. For servers that have no other way to be told a wrong time.
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

std::atomic<std::int64_t>* shift = nullptr;

// Not by the library's functions: those may be called before it is ready.
__attribute__((constructor)) void MapFile() {
  const char* const path = std::getenv("WEIR_CLOCK_FILE");
  if (path == nullptr) return;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) std::abort();
  void* const page = mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) std::abort();
  shift = static_cast<std::atomic<std::int64_t>*>(page);
  close(file);
}

bool IsWall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && IsWall(clock) && shift != nullptr) {
    const std::int64_t now =
        time->tv_sec * kSecond + time->tv_nsec + shift->load(std::memory_order_relaxed);
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
