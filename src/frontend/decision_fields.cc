#include "frontend/decision_fields.h"

#include <algorithm>
#include <chrono>

namespace weir {
namespace {

// Nobody waits for less than nothing.
template <typename Unit>
std::int64_t Whole(Duration wait) noexcept {
  return RoundUpTo<Unit>(std::max(wait, Duration(0)));
}

}  // namespace

DecisionFields FieldsOf(const Decision& decision, WallTime now) noexcept {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  DecisionFields fields;
  if (decision.retry_after != kNever) {
    fields.retry_after = Whole<seconds>(decision.retry_after);
    fields.retry_after_ms = Whole<milliseconds>(decision.retry_after);
  }
  fields.reset_after = Whole<seconds>(decision.reset_after);
  fields.reset_after_ms = Whole<milliseconds>(decision.reset_after);
  // The sum in nanoseconds, if it can be had; at the end of time, the end of time.
  const Duration reset_after = std::max(decision.reset_after, Duration(0));
  const Duration since_epoch = now.time_since_epoch();
  const Duration reset_at =
      since_epoch > Duration::max() - reset_after ? Duration::max() : since_epoch + reset_after;
  fields.reset_at = RoundUpTo<seconds>(reset_at);
  fields.delay_ms = Whole<milliseconds>(decision.delay);
  return fields;
}

}  // namespace weir
