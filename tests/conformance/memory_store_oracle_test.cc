// long
// The memory store against the oracle, on the traces that the pure steps are held to.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store_subject.h"
#include "trace.h"
#include "trace_run.h"

namespace weir::conformance {
namespace {

std::optional<std::string> RunOnMemory(const Trace& trace) {
  const auto limit = Limit::Make(trace.spec);
  if (!limit) return "refused: " + limit.error().message;
  MemoryStore store({.cap_bytes = kMinCapBytes, .max_reservations = 512}, trace.start);
  // Half of the traces take the short way where there is one.
  StoreSubject::Shortcut shortcut;
  if (trace.seed % 2 == 0) {
    shortcut = [&](const Charge& charge, Now now) { return store.Decide(charge, now); };
  }
  StoreSubject subject(store, *limit, "key", shortcut);
  return Replay(trace, subject);
}

class MemoryStoreOracle : public testing::TestWithParam<Family> {};

TEST_P(MemoryStoreOracle, AgreesWithTheStoreAtEveryStepOfRandomTraces) {
  const TraceOptions options{.clock_damage = false, .most_cost = kMaxCount};
  EXPECT_EQ(RunTraces(GetParam(), options, RunOnMemory), std::nullopt);
}

TEST_P(MemoryStoreOracle, AgreesWhenAClockSteppedBackSoFarThatStateMustBeMended) {
  const TraceOptions options{.most_cost = kMaxCount};
  EXPECT_EQ(RunTraces(GetParam(), options, RunOnMemory), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, MemoryStoreOracle, testing::ValuesIn(kEveryFamily),
                         [](const auto& family) { return std::string(NameOf(family.param)); });

}  // namespace
}  // namespace weir::conformance
