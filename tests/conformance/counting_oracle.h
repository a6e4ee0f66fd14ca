// The models of everything that counts units: windows, the log and leases.
#pragma once

#include "oracle.h"

namespace weir::conformance {

constexpr Wide FloorDiv(Wide value, Wide by) {
  const Wide quotient = value / by;
  return quotient * by > value ? quotient - 1 : quotient;
}
constexpr Wide CeilDiv(Wide value, Wide by) { return -FloorDiv(-value, by); }

std::unique_ptr<Oracle> MakeCountingOracle(const LimitSpec& spec, Now start, int resolution);

}  // namespace weir::conformance
