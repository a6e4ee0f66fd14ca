#include "server/open_files.h"

#include <sys/resource.h>

namespace weir {

std::size_t RaiseOpenFiles() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const rlimit raised{.rlim_cur = files.rlim_max, .rlim_max = files.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  return static_cast<std::size_t>(files.rlim_cur);
}

}  // namespace weir
