#include "harness/resident_memory.h"

#include <unistd.h>

#include <cstdio>

#include "harness/require.h"

namespace weir::bench {

std::uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  Require(file != nullptr, "/proc/self/statm can be read");
  unsigned long total = 0;
  unsigned long resident = 0;
  const int read = std::fscanf(file, "%lu %lu", &total, &resident);
  std::fclose(file);
  Require(read == 2, "/proc/self/statm starts with two numbers");
  return std::uint64_t{resident} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace weir::bench
