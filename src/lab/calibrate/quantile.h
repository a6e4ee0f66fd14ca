// Quantiles as limits need them, and numbers that people like to read.
#pragma once

#include <cstdint>
#include <span>

namespace weir::lab {

// The least value that at least this part of all do not exceed: of ten, 0.9 is the ninth and 0.91
// the tenth. 0 if there are none. `sorted`: the least first.
std::uint32_t QuantileOf(std::span<const std::uint32_t> sorted, double part) noexcept;

// Whether there are so few that the quantile is simply the largest.
bool IsTheLargest(std::size_t values, double part) noexcept;

// The roundest number that is not less, and not more than 2 % more: 1,234 is 1,250, 101 is 102.
std::int64_t FriendlyFrom(double least) noexcept;

}  // namespace weir::lab
