// long
// Every algorithm against the oracle, on random traces.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "promise_checker.h"
#include "pure_subject.h"
#include "trace.h"
#include "trace_run.h"

namespace weir::conformance {
namespace {

bool MustChangeNothing(const TraceStep& step) {
  if (step.clock_damage) return false;
  if (step.action.verb == TraceVerb::kPeek) return true;
  if (step.action.verb != TraceVerb::kCheck) return false;
  return step.action.cost == 0 || !step.expected.allowed;
}

// A denial says when the same request would pass: then, and not a nanosecond earlier.
std::optional<std::string> CheckRetryAfter(const PureSubject& subject, const TraceStep& step,
                                           const Decision& denial) {
  TraceAction again = step.action;
  again.verb = TraceVerb::kPeek;
  const Duration wait = denial.retry_after;
  const auto allowed = [&](Duration after) {
    return PureSubject(subject).Do(again, {step.now.steady + after, step.now.wall + after}).allowed;
  };
  if (!allowed(wait)) return "still denied after retry_after";
  if (allowed(wait - Duration(1))) return "would have passed before retry_after";
  return std::nullopt;
}

std::optional<std::string> RunOnSteps(const Trace& trace) {
  const auto limit = Limit::Make(trace.spec);
  if (!limit) return "refused: " + limit.error().message;
  PureSubject subject(*limit, trace.start);
  for (const TraceStep& step : trace.steps) {
    const auto problem = [&](const std::string& what) {
      return "at #" + std::to_string(step.action.number) + ": " + what;
    };
    const bool must_stay = MustChangeNothing(step);
    const std::string before = must_stay ? subject.State(step.now) : "";
    const Decision decision = subject.Do(step.action, step.now);
    if (auto difference = Difference(step.expected, decision)) return problem(*difference);
    if (must_stay && subject.State(step.now) != before) return problem("it changed the state");
    if (decision.reason == Reason::kLimited && step.action.verb == TraceVerb::kCheck) {
      if (auto wrong = CheckRetryAfter(subject, step, decision)) return problem(*wrong);
    }
  }
  return std::nullopt;
}

std::optional<std::string> RunOnPromise(const Trace& trace) {
  const auto limit = Limit::Make(trace.spec);
  if (!limit) return "refused: " + limit.error().message;
  PureSubject subject(*limit, trace.start);
  PromiseChecker promise(trace.spec, trace.start);
  for (const TraceStep& step : trace.steps) {
    promise.Add(step.action, step.now, subject.Do(step.action, step.now));
  }
  return promise.Broken();
}

class AlgorithmOracle : public testing::TestWithParam<Family> {};

TEST_P(AlgorithmOracle, AgreesWithTheStepAtEveryStepOfRandomTraces) {
  EXPECT_EQ(RunTraces(GetParam(), {}, RunOnSteps), std::nullopt);
}

TEST_P(AlgorithmOracle, FindsNoIntervalAboveThePromise) {
  EXPECT_EQ(RunTraces(GetParam(), {.plain = true}, RunOnPromise), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, AlgorithmOracle, testing::ValuesIn(kEveryFamily),
                         [](const auto& family) { return std::string(NameOf(family.param)); });

}  // namespace
}  // namespace weir::conformance
