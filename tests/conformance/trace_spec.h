// Random limits: the whole range that a limit may have, with more weight on small counts, where
// requests get denied.
#pragma once

#include <string>

#include <weir/limit.h>

#include "random.h"
#include "trace.h"

namespace weir::conformance {

LimitSpec RandomSpec(Family family, const TraceOptions& options, Random& random);

std::string Describe(const LimitSpec& spec);

}  // namespace weir::conformance
