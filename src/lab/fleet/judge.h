// Whether a run kept the promises:
//
//   I1  in every interval, under every rule and key: no more was let through than the limit says,
//       plus what is stated for what happened
//   I2  every denial has a reason, and what is known of all charges agrees with it
//   I3  every decision was made under one whole version of the policy
//   I4  every request is answered once
//   I5  calls under way, connections and memory stay within their caps
//   I6  every answer in time, also while the store fails, and at once while its breaker is open
//   I7  two seconds after the last fault the store decides again, and nobody storms it
//   I8  what was answered, what engines counted and what the store holds agree
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/fleet/record.h"

namespace weir::lab {

inline constexpr std::size_t kInvariants = 8;

struct Finding {
  std::string_view name;  // I1
  std::string_view says;
  std::uint64_t checked = 0;
  std::uint64_t broken = 0;
  std::vector<std::string> examples{};  // The first few.
};

struct Verdict {
  std::array<Finding, kInvariants> findings;

  Verdict();
  // 1 to 8.
  Finding& Of(int number) { return findings[static_cast<std::size_t>(number - 1)]; }
  bool is_clean() const noexcept;
  // Notes that something was looked at, and if it was not right what it was.
  void Check(int number, bool is_right, const auto& what) {
    ++Of(number).checked;
    if (!is_right) Break(number, what());
  }
  void Break(int number, std::string what);
};

Verdict Judge(const Record& record);

// When the last of what people notice was over, of what had begun by `at`.
Duration HealedBefore(const Record& record, Duration at);

// Its part about counts: I1, what is known about denials, and what is left at the end.
void JudgeTracks(const Record& record, Verdict& verdict);

// "(asked at 1.234567 s of node 2)"
std::string AskedAt(const Asked& asked);

}  // namespace weir::lab
