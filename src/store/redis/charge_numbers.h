// What the script is told about a charge: everything that can be worked out beforehand, so that it
// only has to add and compare.
#pragma once

#include <cstdint>
#include <vector>

#include <weir/limit.h>
#include <weir/time.h>

#include "algorithm/step.h"

namespace weir::redis {

// Where all times on a shared store count from: 2025-01-01.
inline constexpr WallTime kEpoch{std::chrono::sys_days(std::chrono::year(2025) / 1 / 1)};

inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// A change of a bucket's level (how long until it is full), in nanoseconds.
struct LevelChange {
  enum class Kind : std::uint8_t {
    kAdd,       // `add`, which may be negative.
    kGiveBack,  // What is left of `add`, charged up to the receipt.
    kUnbook,    // `add`, if the bucket still ends at the receipt.
  };
  static constexpr std::int64_t kInfinite = INT64_MAX;

  Kind kind = Kind::kAdd;
  std::int64_t add = 0;
  std::int64_t slack = kInfinite;  // Allowed if the level is no higher before.
  std::int64_t furthest = 0;       // A level above this is clock damage.
  std::int64_t most = kInfinite;   // What is added raises no level above this.

  // Whether the script may work with single numbers, which are exact up to 2^53.
  bool is_short() const noexcept;
};
LevelChange LevelChangeOf(const Limit& limit, const StepRequest& request) noexcept;

// The four numbers of a short one.
void AppendShort(std::vector<double>& numbers, const LevelChange& change);

// All that the script needs, of any limit that counts. `wall` is about when it is on the
// server: it says which windows of a calendar may be the server's. Receipts count nanoseconds from
// kEpoch.
void AppendNumbers(std::vector<double>& numbers, const Limit& limit, const StepRequest& request,
                   WallTime wall);

}  // namespace weir::redis
