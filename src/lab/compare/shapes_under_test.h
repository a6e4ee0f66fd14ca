// Every shape of traffic, for tests of what must hold for all of them.
#pragma once

#include "lab/compare/traffic.h"

namespace weir::lab {

inline constexpr Shape kShapes[] = {Shape::kSteady,   Shape::kPoisson,    Shape::kBurst,
                                    Shape::kBoundary, Shape::kLateWindow, Shape::kDiurnal};

}  // namespace weir::lab
