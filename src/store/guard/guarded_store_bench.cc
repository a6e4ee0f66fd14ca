// What the guard adds to a group on its way, and what it takes to decide one in the store's place.
#include <benchmark/benchmark.h>

#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

// Answers at once, and the same to everybody.
class Yes final : public Store {
 public:
  explicit Yes(bool fails) : fails_(fails) {}
  std::uint64_t Hash(std::string_view) const noexcept override { return 0; }
  void Submit(std::span<Group> groups, Now, Completion& completion) noexcept override {
    for (Group& group : groups) {
      group.error.reset();
      if (fails_) group.error = Error{ErrorCode::kDeadline, "late"};
      group.decision = {.allowed = true, .source = Source::kStore};
      for (Decision& decision : group.decisions) decision = group.decision;
      completion.OnDecided(group);
    }
  }

 private:
  const bool fails_;
};

void Groups(benchmark::State& state, bool fails, FailureMode mode) {
  LoopUnderTest loop;
  Guard guard({.fleet_size = 4}, loop.clock);
  Yes yes(fails);
  GuardedStore store(yes, guard, loop);
  const Limit limit = LimitOf("1000000/s");
  Charge charges[3];
  for (std::size_t i = 0; i < 3; ++i) {
    charges[i] = {.rule = "rule", .hash = 1 + i, .limit = &limit, .on_failure = mode};
  }
  Decision decisions[3];
  Group group{.charges = {charges, static_cast<std::size_t>(state.range(0))},
              .decisions = {decisions, static_cast<std::size_t>(state.range(0))}};
  for (auto _ : state) {
    loop.clock.Advance(std::chrono::microseconds(10));
    SubmitOne(store, group, loop.now());
  }
}

BENCHMARK_CAPTURE(Groups, healthy_not_fed, false, FailureMode::kOpen)->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(Groups, healthy_fed, false, FailureMode::kStatic)->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(Groups, failing_open, true, FailureMode::kOpen)->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(Groups, failing_static, true, FailureMode::kStatic)->Arg(1)->Arg(3);

}  // namespace
}  // namespace weir
