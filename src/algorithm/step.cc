#include "algorithm/step.h"

#include <algorithm>

namespace weir {

std::int64_t AddUpTo(std::int64_t count, std::int64_t cost, std::int64_t most) noexcept {
  if (count >= most) return count;
  return count + std::min(cost, most - count);
}

std::int64_t InProportion(std::int64_t count, const Limit& from, const Limit& to) noexcept {
  __extension__ using Wide = unsigned __int128;
  const auto product = static_cast<Wide>(count) * static_cast<Wide>(to.capacity());
  const auto divisor = static_cast<Wide>(from.capacity());
  return static_cast<std::int64_t>((product + divisor - 1) / divisor);
}

CountedVerdict JudgeCount(const Limit& limit, std::int64_t used,
                          const StepRequest& request) noexcept {
  const bool manages = request.verb != Verb::kCheck && request.verb != Verb::kPeek;
  if (manages) return {.allowed = true, .never_fits = false};
  // An overdraft asks only whether anything is left.
  const std::int64_t wanted = limit.spec().overdraft ? 1 : AskedCost(request);
  if (wanted > limit.capacity()) return {.allowed = false, .never_fits = true};
  return {.allowed = used <= limit.capacity() - wanted, .never_fits = false};
}

Decision DescribeCount(const Limit& limit, std::int64_t used, const StepRequest& request,
                       CountedVerdict verdict) noexcept {
  Decision decision;
  decision.allowed = verdict.allowed;
  decision.reason = verdict.allowed      ? Reason::kOk
                    : verdict.never_fits ? Reason::kNeverFits
                                         : Reason::kLimited;
  decision.limit = limit.capacity();
  decision.remaining = std::max<std::int64_t>(0, limit.capacity() - used);
  decision.cost = request.cost;
  if (verdict.never_fits) decision.retry_after = kNever;
  return decision;
}

}  // namespace weir
