// The shipped script against the oracle, on random traces: bytes of a call, Lua, bytes of the
// answer.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "script_store.h"
#include "store_subject.h"
#include "trace.h"
#include "trace_run.h"

namespace weir::conformance {
namespace {

using Expiry = ScriptStore::Expiry;

// Eighteen runs make more than a million steps.
constexpr std::uint64_t kFewer = 16;

std::optional<std::string> RunOnScript(const Trace& trace, Expiry expiry) {
  const auto made = Limit::Make(trace.spec);
  const auto limit = made ? made->ForSharedStore() : made;
  if (!limit) return "refused: " + limit.error().message;
  ScriptStore store(expiry);
  StoreSubject subject(store, *limit, "key", trace);
  for (const TraceStep& step : trace.steps) {
    const Decision decision = subject.Do(step.action, step.now);
    if (!store.problem().empty()) {
      return "at #" + std::to_string(step.action.number) + ": " + store.problem();
    }
    if (auto difference = Difference(step.expected, decision)) {
      return "at #" + std::to_string(step.action.number) + ": " + *difference;
    }
  }
  if (store.corrupt() != 0) return "took its own values for somebody else's";
  return std::nullopt;
}

TraceOptions SharedOptions() {
  return {.ticks_per_nanosecond = 1,
          .most_per_second = kMaxSharedBucketRate,
          .most_cost = kMaxCount,
          .most_log_entries = kMaxSharedLogEntries,
          .server_clock = true};
}

class ScriptOracle : public testing::TestWithParam<Family> {};

TEST_P(ScriptOracle, AgreesAtEveryStepWhileTheClockGoesOn) {
  TraceOptions options = SharedOptions();
  options.plain = true;
  const auto trial = [](const Trace& trace) { return RunOnScript(trace, Expiry::kAsTold); };
  EXPECT_EQ(RunTraces(GetParam(), options, trial, kFewer), std::nullopt);
}

TEST_P(ScriptOracle, AgreesAtEveryStepWhateverIsAskedAndWhereverTheClockGoes) {
  const auto trial = [](const Trace& trace) { return RunOnScript(trace, Expiry::kNever); };
  EXPECT_EQ(RunTraces(GetParam(), SharedOptions(), trial, kFewer), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, ScriptOracle, testing::ValuesIn(kEveryFamily),
                         [](const auto& family) { return std::string(NameOf(family.param)); });

}  // namespace
}  // namespace weir::conformance
