#include "frontend/decision_fields.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace weir {
namespace {

// A wait of at least nothing, rounded up. Most waits are none at all.
struct Wait {
  explicit Wait(Duration wait) noexcept {
    if (wait <= Duration(0)) return;
    milliseconds = RoundUpTo<std::chrono::milliseconds>(wait);
    // What was rounded up already stays within the same second.
    seconds = milliseconds / 1000 + (milliseconds % 1000 != 0 ? 1 : 0);
  }

  std::int64_t seconds = 0;
  std::int64_t milliseconds = 0;
};

}  // namespace

DecisionFields FieldsOf(const Decision& decision, WallTime now) noexcept {
  DecisionFields fields;
  if (decision.retry_after != kNever) {
    const Wait retry(decision.retry_after);
    fields.retry_after = retry.seconds;
    fields.retry_after_ms = retry.milliseconds;
  }
  const Wait reset(decision.reset_after);
  fields.reset_after = reset.seconds;
  fields.reset_after_ms = reset.milliseconds;
  // The sum in nanoseconds, if it can be had; at the end of time, the end of time.
  const Duration reset_after = std::max(decision.reset_after, Duration(0));
  const Duration since_epoch = now.time_since_epoch();
  const Duration reset_at =
      since_epoch > Duration::max() - reset_after ? Duration::max() : since_epoch + reset_after;
  fields.reset_at = RoundUpTo<std::chrono::seconds>(reset_at);
  fields.delay_ms = Wait(decision.delay).milliseconds;
  return fields;
}

ReservationText::ReservationText(ReservationId id) noexcept {
  constexpr std::string_view kHex = "0123456789abcdef";
  auto rest = static_cast<std::uint64_t>(id);
  for (auto digit = digits_.rbegin(); digit != digits_.rend(); ++digit, rest >>= 4U) {
    *digit = kHex[rest & 15U];
  }
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
