// Checks of keys that the stores have never seen: what a flood of new keys costs.
#pragma once

#include <string>

#include "harness/results.h"

namespace weir::bench {

struct NewKeysOptions {
  int rounds = 1;
  double scale = 1;        // Of the number of keys.
  std::string governor{};  // Where governor's library is; left out if empty.
};

// Every run starts with an empty store. Results are called STORE/new/4M/reserved/single/1thread:
// `reserved` has room for all keys from the start, `growing` for none, and `capped` (Weir only)
// never for more than a part of them, so that each newcomer takes somebody's place.
void RunNewKeys(const NewKeysOptions& options, Results& results);

}  // namespace weir::bench
