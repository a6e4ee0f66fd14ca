// What a limit promises, looked at in every interval of what was let through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weir/limit.h>

namespace weir::simulation {

struct Admission {
  Duration at{0};        // When it was decided.
  Duration goes{0};      // When it went ahead: later, if it was told to wait.
  Duration earliest{0};  // It was asked no earlier,
  Duration latest{0};    // and answered no later.
  std::int64_t cost = 1;
  Duration live_until{0};  // Leases.
};

struct PromiseTerms {
  // `at` is what the server's clock showed, to the microsecond. Otherwise only the times of asking
  // and answering are known.
  bool times_are_exact = true;
  // When servers forgot something, in the world's time.
  std::vector<Duration> forgotten{};
  // How far the server's calendar is ahead of the world's time.
  Duration wall_offset{0};
};

// The first interval in which there was too much.
std::optional<std::string> FindExcess(const Limit& limit, std::vector<Admission> admissions,
                                      const PromiseTerms& terms);

// The most that may be charged on a key, by what is known: enough to deny `cost` at `at`?
bool MayDeny(const Limit& limit, const std::vector<Admission>& charged, std::int64_t unknown,
             Duration at, std::int64_t cost, Duration wall_offset);

}  // namespace weir::simulation
