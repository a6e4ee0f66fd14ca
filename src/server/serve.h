// weir serve: the service, under a policy that is kept up to date with its file.
#pragma once

#include <string>

#include "server/console.h"
#include "server/log.h"

namespace weir {

struct ServeOptions {
  std::string policy_file;
  bool force_reload = false;  // Takes changes that look like accidents.
  Log::Format log = Log::Format::kText;
  unsigned threads = 0;  // 0: one for each core that it may run on.
};

// Where files are that its policy names.
std::string FolderOf(const ServeOptions& options);

// Returns when told to stop. Prints `ready` when it is up.
int RunServe(const ServeOptions& options, const Console& console);

}  // namespace weir
