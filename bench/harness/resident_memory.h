// How much memory this process holds.
#pragma once

#include <cstdint>

namespace weir::bench {

// What the kernel has given it pages for.
std::uint64_t ResidentBytes();

}  // namespace weir::bench
