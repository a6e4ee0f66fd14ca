#include "server/open_files.h"

#include <sys/resource.h>

namespace weir {

std::optional<std::string> MakeRoomForConnections(std::int64_t connections) {
  constexpr std::size_t kOthers = 64;
  const std::size_t files = RaiseOpenFiles();
  if (files >= static_cast<std::size_t>(connections) + kOthers) return std::nullopt;
  return "limits: connections: only " + std::to_string(files) +
         " files may be open at a time, which is too few for " + std::to_string(connections) +
         " connections; raise the limit of the system (ulimit -n, LimitNOFILE) or lower this one";
}

std::size_t RaiseOpenFiles() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const rlimit raised{.rlim_cur = files.rlim_max, .rlim_max = files.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  return static_cast<std::size_t>(files.rlim_cur);
}

}  // namespace weir
