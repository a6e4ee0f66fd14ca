#include "trace.h"

#include <map>

#include "oracle.h"
#include "trace_maker.h"
#include "trace_spec.h"

namespace weir::conformance {
namespace {

// The same steps asked of a fresh oracle. False if one settles a charge that is not there any more.
bool Reanswer(Trace& trace) {
  const auto oracle = MakeOracle(trace.spec, trace.start, trace.ticks_per_nanosecond);
  std::map<int, bool> charged;
  for (TraceStep& step : trace.steps) {
    if (step.action.of >= 0 && !charged[step.action.of]) return false;
    step.expected = oracle->Do(step.action, step.now);
    step.clock_damage = oracle->met_clock_damage();
    charged[step.action.number] =
        step.action.verb == TraceVerb::kCheck && step.expected.allowed && step.action.cost > 0;
  }
  return true;
}

std::string_view NameOf(TraceVerb verb) {
  switch (verb) {
    case TraceVerb::kCheck:
      return "check";
    case TraceVerb::kPeek:
      return "peek";
    case TraceVerb::kRefund:
      return "refund";
    case TraceVerb::kPenalize:
      return "penalize";
    case TraceVerb::kReset:
      return "reset";
    case TraceVerb::kSettle:
      return "settle";
    case TraceVerb::kUnbook:
      return "unbook";
  }
  return "";
}

std::string_view NameOf(Keeps keeps) {
  switch (keeps) {
    case Keeps::kNothing:
      return "";
    case Keeps::kReceipt:
      return " (keeps its receipt)";
    case Keeps::kReservation:
      return " (reserves)";
  }
  return "";
}

std::string Describe(const Decision& decision) {
  return std::string(decision.allowed ? "allowed" : "denied") + " " +
         std::string(weir::NameOf(decision.reason)) +
         " remaining=" + std::to_string(decision.remaining) + "/" + std::to_string(decision.limit) +
         " retry=" + std::to_string(decision.retry_after.count()) +
         " reset=" + std::to_string(decision.reset_after.count()) +
         " delay=" + std::to_string(decision.delay.count());
}

}  // namespace

std::string_view NameOf(Family family) {
  switch (family) {
    case Family::kTokenBucket:
      return "TokenBucket";
    case Family::kLeakyMeter:
      return "LeakyMeter";
    case Family::kLeakyQueue:
      return "LeakyQueue";
    case Family::kFixedEpoch:
      return "FixedEpoch";
    case Family::kFixedCalendar:
      return "FixedCalendar";
    case Family::kSlidingEstimate:
      return "SlidingEstimate";
    case Family::kSlidingStrict:
      return "SlidingStrict";
    case Family::kSlidingLog:
      return "SlidingLog";
    case Family::kConcurrency:
      return "Concurrency";
  }
  return "";
}

Trace MakeTrace(Family family, std::uint64_t seed, const TraceOptions& options) {
  TraceMaker maker(family, seed, options);
  while (maker.HasNext()) maker.Answer(maker.Next().now);
  return maker.trace();
}

std::optional<std::string> Difference(const Decision& expected, const Decision& got) {
  const bool same = expected.allowed == got.allowed && expected.reason == got.reason &&
                    expected.limit == got.limit && expected.remaining == got.remaining &&
                    expected.cost == got.cost && expected.retry_after == got.retry_after &&
                    expected.reset_after == got.reset_after && expected.delay == got.delay;
  if (same) return std::nullopt;
  return "expected " + Describe(expected) + "\n     got " + Describe(got);
}

Trace Shrink(Trace trace, const Trial& trial) {
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (std::size_t i = trace.steps.size(); i-- > 0;) {
      Trace candidate = trace;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(i));
      if (!Reanswer(candidate) || !trial(candidate)) continue;
      trace = std::move(candidate);
      shorter = true;
    }
  }
  return trace;
}

std::string Describe(const Trace& trace) {
  std::string text = "seed " + std::to_string(trace.seed) + ": " + Describe(trace.spec) +
                     " start wall=" + std::to_string(trace.start.wall.time_since_epoch().count()) +
                     "\n";
  for (const TraceStep& step : trace.steps) {
    const TraceAction& action = step.action;
    text += "  #" + std::to_string(action.number) +
            " t=" + std::to_string((step.now.steady - trace.start.steady).count()) +
            " wall=" + std::to_string((step.now.wall - trace.start.wall).count()) + " " +
            std::string(NameOf(action.verb)) + " cost=" + std::to_string(action.cost);
    if (action.wait != Duration(0)) text += " wait=" + std::to_string(action.wait.count());
    text += NameOf(action.keeps);
    if (action.of >= 0) text += " of=#" + std::to_string(action.of);
    text += " -> " + Describe(step.expected) + (step.clock_damage ? " (clock damage)" : "") + "\n";
  }
  return text;
}

}  // namespace weir::conformance
