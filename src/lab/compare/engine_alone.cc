#include "lab/compare/engine_alone.h"

#include <utility>

#include <weir/policy.h>

namespace weir::lab {
namespace {

Engine MakeEngine(Clock& clock) {
  PolicySpec spec;
  spec.memory.cap = std::int64_t{4} << 30;  // Nothing may be forgotten while it is measured.
  return Engine::Make(Policy::Make(std::move(spec)).policy.value(), {.clock = &clock}).value();
}

}  // namespace

EngineAlone::EngineAlone(WallTime start)
    : clock_(start), start_(clock_.Read()), engine_(MakeEngine(clock_)) {}

}  // namespace weir::lab
