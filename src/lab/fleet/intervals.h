// Every interval of what was let through, however much it was.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weir/limit.h>

#include "sim/promise.h"

namespace weir::lab {

// As sim::FindExcess, which looks at each pair of admissions: where there are thousands, at all
// pairs that are near to each other, and at all others in one go.
std::optional<std::string> FindAnyExcess(const Limit& limit, std::vector<sim::Admission> admissions,
                                         const sim::PromiseTerms& terms);

// What adds up to what, from one moment until another. Asked for in the order of time.
class SumOverTime {
 public:
  // From then on, and until just before `to`.
  void Add(Duration from, Duration to, std::int64_t units);
  std::int64_t At(Duration at);

 private:
  std::map<Duration, std::int64_t> changes_;
  std::int64_t sum_ = 0;
};

}  // namespace weir::lab
