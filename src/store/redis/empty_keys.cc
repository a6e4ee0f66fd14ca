#include "store/redis/empty_keys.h"

#include <algorithm>

namespace weir::redis {

void EmptyKeys::Add(const Charge& charge, const Decision& decision, SteadyTime now,
                    WallTime decided_at) {
  const bool will_end = decision.retry_after > Duration(0) && decision.retry_after < kNever;
  const bool is_place = charge.limit->algorithm() == Algorithm::kConcurrency;
  if (decision.allowed || !will_end || is_place || charge.hash == 0) return;
  if (keys_.size() >= kMost) {
    std::erase_if(keys_, [now](const auto& key) { return key.second.until <= now; });
    if (keys_.size() >= kMost) return;  // It is asked again, which is right if slower.
  }
  keys_[charge.hash] = {.since = now,
                        .until = now + std::min(decision.retry_after, kLongest),
                        .decided_at = decided_at,
                        .cost = std::max<std::int64_t>(1, charge.cost),
                        .family = charge.limit->family(),
                        .decision = decision};
}

const EmptyKeys::Known* EmptyKeys::Find(const Charge& charge, SteadyTime now) noexcept {
  const auto found = keys_.find(charge.hash);
  if (found == keys_.end()) return nullptr;
  const Denial& denial = found->second;
  if (denial.until <= now || denial.family != charge.limit->family()) {
    keys_.erase(found);
    return nullptr;
  }
  // Who wants less, or is ready to wait for it, may fare better.
  if (charge.cost < denial.cost || charge.wait > Duration(0)) return nullptr;
  const Duration passed = now - denial.since;
  Decision& decision = told_.decision;
  decision = denial.decision;
  decision.rule = charge.rule;
  decision.cost = charge.cost;
  decision.retry_after -= passed;
  decision.reset_after = std::max(decision.retry_after, decision.reset_after - passed);
  told_.time = denial.decided_at + passed;
  return &told_;
}

}  // namespace weir::redis
