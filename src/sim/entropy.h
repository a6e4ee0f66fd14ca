// Takes the place of the operating system's random bits, so that a seed gives the same names of
// reservations, too.
#pragma once

#include <cstdint>

namespace weir::sim {

// From now on, on this thread.
void SeedEntropy(std::uint64_t seed);

}  // namespace weir::sim
