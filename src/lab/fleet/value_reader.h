// Values of a scenario that a policy does not have: ranges that a seed draws from, and rates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lab/fleet/scenario.h"
#include "policy/policy_ranges.h"
#include "policy/spec_reader.h"

namespace weir::lab {

// "5" or "1..4", "20ms" or "20ms..50ms", "10/s" or "5/s..40/s".
void ReadNumbers(SpecReader& reader, const Spot& spot, Between<int>& numbers,
                 const Range<int>& range);
void ReadCosts(SpecReader& reader, const Spot& spot, Between<std::int64_t>& costs);
void ReadLengths(SpecReader& reader, const Spot& spot, Between<Duration>& lengths,
                 const Range<Duration>& range);
void ReadRates(SpecReader& reader, const Spot& spot, Between<double>& rates);
// "100ppm".
void ReadDrift(SpecReader& reader, const Spot& spot, int& millionths);

// 0.5, 1000, 2k.
std::optional<double> ParseNumber(std::string_view text);

}  // namespace weir::lab
