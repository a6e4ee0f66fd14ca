// A decision in the numbers that go over the wire, the same in every protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <weir/decision.h>

namespace weir {

struct DecisionFields {
  // Seconds and milliseconds are rounded up: a client that comes back early is denied again. None:
  // no amount of waiting would help.
  std::optional<std::int64_t> retry_after{};
  std::optional<std::int64_t> retry_after_ms{};
  std::int64_t reset_after = 0;
  std::int64_t reset_after_ms = 0;
  std::int64_t reset_at = 0;  // Seconds since 1970.
  std::int64_t delay_ms = 0;
};
DecisionFields FieldsOf(const Decision& decision, WallTime now) noexcept;

// A reservation goes over the wire as this many hexadecimal digits. None if the text is no such.
inline constexpr std::size_t kReservationDigits = 16;
std::optional<ReservationId> ParseReservation(std::string_view text) noexcept;
class ReservationText {
 public:
  explicit ReservationText(ReservationId id) noexcept;
  std::string_view view() const noexcept { return {digits_.data(), digits_.size()}; }

 private:
  std::array<char, kReservationDigits> digits_;
};

// The longest that a reservation may stay open. They take places that others need, too.
inline constexpr Duration kMostReservationTtl = std::chrono::hours(1);

}  // namespace weir
