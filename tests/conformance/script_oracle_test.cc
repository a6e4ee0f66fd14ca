// long
// The shipped script against the oracle, on random traces: bytes of a call, Lua, bytes of the
// answer.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "script_store.h"
#include "shared_options.h"
#include "store_subject.h"
#include "trace.h"
#include "trace_run.h"

namespace weir::conformance {
namespace {

using Expiry = ScriptStore::Expiry;

// Eighteen runs make more than a million steps.
constexpr std::uint64_t kFewerScriptTraces = 16;

std::optional<std::string> RunOnScript(const Trace& trace, Expiry expiry) {
  const auto limit = SharedLimit(trace.spec);
  if (!limit) return "refused: " + limit.error().message;
  ScriptStore store(expiry, ScriptStore::Company::kEverySecondCall);
  StoreSubject subject(store, *limit, "key");
  const auto wrong = Replay(trace, subject);
  if (!store.problem().empty()) return store.problem();
  if (!wrong && store.corrupt() != 0) return "took its own values for somebody else's";
  return wrong;
}

class ScriptOracle : public testing::TestWithParam<Family> {};

TEST_P(ScriptOracle, AgreesAtEveryStepWhileTheClockGoesOn) {
  TraceOptions options = SharedOptions();
  options.plain = true;
  const auto trial = [](const Trace& trace) { return RunOnScript(trace, Expiry::kAsTold); };
  EXPECT_EQ(RunTraces(GetParam(), options, trial, kFewerScriptTraces), std::nullopt);
}

TEST_P(ScriptOracle, AgreesAtEveryStepWhateverIsAskedAndWhereverTheClockGoes) {
  const auto trial = [](const Trace& trace) { return RunOnScript(trace, Expiry::kNever); };
  EXPECT_EQ(RunTraces(GetParam(), SharedOptions(), trial, kFewerScriptTraces), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, ScriptOracle, testing::ValuesIn(kEveryFamily),
                         [](const auto& family) { return std::string(NameOf(family.param)); });

}  // namespace
}  // namespace weir::conformance
