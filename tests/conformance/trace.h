// Random traces with the answers that the oracle gives, and the comparison of a Subject with them.
//
// A trace is made while the oracle runs, so that time can be moved to just before, at and just
// after the instants at which answers change. One 64-bit seed makes one trace.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/limit.h>

#include "subject.h"

namespace weir::conformance {

enum class Family : std::uint8_t {
  kTokenBucket,
  kLeakyMeter,
  kLeakyQueue,
  kFixedEpoch,
  kFixedCalendar,
  kSlidingEstimate,
  kSlidingStrict,
  kSlidingLog,
  kConcurrency,
};
inline constexpr Family kEveryFamily[] = {
    Family::kTokenBucket,   Family::kLeakyMeter,    Family::kLeakyQueue,
    Family::kFixedEpoch,    Family::kFixedCalendar, Family::kSlidingEstimate,
    Family::kSlidingStrict, Family::kSlidingLog,    Family::kConcurrency};
std::string_view NameOf(Family family);

struct TraceOptions {
  int most_steps = 300;
  // Only checks that count, releases of leases, and time that goes forward: what the promises are
  // made for.
  bool plain = false;
  // The same time, but everything may be asked: where what has expired is gone.
  bool only_forward = false;
  // Whether a clock may step back so far that state has to be mended.
  bool clock_damage = true;
  // A sixteenth of a nanosecond in memory; other stores have their own.
  int ticks_per_nanosecond = 16;
  std::int64_t most_per_second = 10'000'000;
  std::int64_t most_cost = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_log_entries = kMaxLogEntries;
  // A shared store has a single clock, that of its server, which counts microseconds from 2025 on.
  bool server_clock = false;
  std::optional<Now> start{};  // Else at random.
};

struct TraceStep {
  TraceAction action;
  Now now;
  Decision expected;
  bool clock_damage = false;  // The oracle met it: this step mends the state, whatever its answer.
};

struct Trace {
  std::uint64_t seed = 0;
  LimitSpec spec;
  Now start;
  int ticks_per_nanosecond = 16;
  std::vector<TraceStep> steps;
};

Trace MakeTrace(Family family, std::uint64_t seed, const TraceOptions& options = {});

// What differs, or nothing.
std::optional<std::string> Difference(const Decision& expected, const Decision& got);

// Runs the whole trace and says what went wrong first. A subject for one limit, one fresh key.
using Trial = std::function<std::optional<std::string>(const Trace&)>;

// Leaves out steps for as long as `trial` still fails; the oracle is asked again each time.
Trace Shrink(Trace trace, const Trial& trial);

// The limit and every step, with expected answers.
std::string Describe(const Trace& trace);

}  // namespace weir::conformance
