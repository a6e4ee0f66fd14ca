#include "frontend/decision_fields.h"

#include <algorithm>
#include <charconv>
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

std::optional<ReservationId> ParseReservation(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, /*base=*/16);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (text.size() != kReservationDigits || !whole || number == 0) return std::nullopt;
  return ReservationId{number};
}

}  // namespace weir
