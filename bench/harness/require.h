// What a benchmark takes for granted, checked: a figure of something else than it says is worse
// than none.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace weir::bench {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "benchmark: this does not hold: %s\n", what);
  std::abort();
}

}  // namespace weir::bench
