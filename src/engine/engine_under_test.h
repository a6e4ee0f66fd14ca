// What the tests of the engine share: an engine on a clock that is moved by hand, under a policy
// that is written down as in a file.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/policy.h>

namespace weir {

// For policies that are known to be right; any other ends the test.
inline Policy PolicyOf(std::string_view yaml) {
  PolicyReport report = Policy::Parse(yaml);
  for (const Problem& problem : report.problems) {
    if (problem.severity == Severity::kError) ADD_FAILURE() << problem.ToString();
  }
  return report.policy.value();
}

inline Policy PolicyOf(const PolicySpec& spec) {
  PolicyReport report = Policy::Make(spec);
  for (const Problem& problem : report.problems) {
    if (problem.severity == Severity::kError) ADD_FAILURE() << problem.ToString();
  }
  return report.policy.value();
}

class EngineUnderTest {
 public:
  explicit EngineUnderTest(const Policy& policy, std::size_t max_reservations = 65'536,
                           std::size_t max_waiters = 10'000)
      : engine(*Engine::Make(policy, {.clock = &clock,
                                      .on_notice = [this](std::string_view text) { Note(text); },
                                      .max_reservations = max_reservations,
                                      .max_waiters = max_waiters})) {}
  explicit EngineUnderTest(std::string_view yaml) : EngineUnderTest(PolicyOf(yaml)) {}
  EngineUnderTest(const EngineUnderTest&) = delete;
  EngineUnderTest& operator=(const EngineUnderTest&) = delete;

  Decision Check(const Request& request, std::int64_t cost = 1) {
    return engine.Check(request, {.cost = cost}).decision;
  }
  Decision Peek(const Request& request, std::int64_t cost = 1) {
    return engine.Peek(request, {.cost = cost}).decision;
  }
  bool Allows(const Request& request) { return Check(request).allowed; }
  // How many of cost 1 pass until one is denied; at most `most`.
  int Exhaust(const Request& request, int most = 1'000) {
    int admitted = 0;
    while (admitted < most && Allows(request)) ++admitted;
    return admitted;
  }
  // What the rule has left for whoever sends this.
  std::int64_t Remaining(std::string_view rule, Request request) {
    const std::array<std::string_view, 1> only = {rule};
    request.rules = only;
    return Peek(request).remaining;
  }
  PolicyChange Apply(std::string_view yaml) { return *engine.Apply(PolicyOf(yaml)); }

  std::vector<std::string> notices() const {
    const std::scoped_lock lock(mutex_);
    return notices_;
  }

  ManualClock clock;

 private:
  void Note(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    notices_.emplace_back(text);
  }
  mutable std::mutex mutex_;
  std::vector<std::string> notices_;

 public:
  Engine engine;
};

}  // namespace weir
