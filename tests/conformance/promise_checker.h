// The promise of each algorithm (what may be let through in any interval), checked by looking at
// every interval of a trace. Against the rate as it was stated, before any rounding.
//
// For traces of plain checks on clocks that never step back: refunds, debt and penalties change
// what was admitted, and the promises do not speak about them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weir/limit.h>

#include "subject.h"

namespace weir::conformance {

class PromiseChecker {
 public:
  PromiseChecker(const LimitSpec& spec, Now start) : spec_(spec), start_(start) {}

  // Every step of the trace, in order, with the answer it got.
  void Add(const TraceAction& action, Now now, const Decision& decision);

  // The first interval in which more was let through than was promised.
  std::optional<std::string> Broken() const;

 private:
  struct Admission {
    Duration at;   // Since the start; when it went ahead, so after its delay.
    Duration end;  // Leases: when it was given back or taken for dead.
    std::int64_t cost;
    bool delayed;
  };

  std::optional<std::string> BrokenLeases() const;
  std::optional<std::string> BrokenWindows() const;
  // Whether `sum` is too much for the closed interval between two admissions.
  bool TooMuch(const Admission& first, const Admission& last, std::int64_t sum) const;

  const LimitSpec spec_;
  const Now start_;
  std::vector<Admission> admissions_;
  std::map<int, std::size_t> by_number_;
  std::int64_t largest_cost_ = 0;
};

}  // namespace weir::conformance
