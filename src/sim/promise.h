// What a limit promises, looked at in every interval of what was let through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weir/limit.h>

namespace weir::sim {

struct Admission {
  Duration at{0};        // When it was decided.
  Duration delay{0};     // It went ahead so much later.
  Duration earliest{0};  // It was decided no earlier,
  Duration latest{0};    // and no later.
  Duration asked{0};     // By the world's clock, whatever those above go by.
  Duration answered{0};
  std::int64_t cost = 1;
  Duration live_until{0};  // Leases.
  // Fixed windows: the one that it was counted in by the server, since 1970, if that is known.
  std::optional<std::int64_t> window{};
};

// Some time within it a server forgot something.
struct Lapse {
  Duration begins{0};
  Duration ends{0};
};

// Some time within it so much was given back, so that as much more may be let through.
struct GivenBack {
  Duration begins{0};
  Duration ends{0};
  std::int64_t units = 0;
};

struct PromiseTerms {
  std::vector<Lapse> lapses{};
  std::vector<GivenBack> given_back{};
  // When the clock of a server was moved, either way, and when it was set back.
  std::vector<Duration> jumps{};
  std::vector<Duration> steps_back{};
  // `earliest` and `latest` are by a clock that is never moved.
  bool is_dated = false;
};

std::int64_t LapsesBetween(const PromiseTerms& terms, Duration first, Duration last);
// How many bursts more there may be: for each lapse, and each time that a clock was set ahead. A
// sliding window that finds itself more than a period ahead goes on as the clock's own window,
// which may be over sooner: for these each step back counts as well.
std::int64_t BurstsBetween(const Limit& limit, const PromiseTerms& terms, Duration first,
                           Duration last);
std::int64_t GivenBackBetween(const PromiseTerms& terms, Duration first, Duration last);

// The first interval in which there was too much.
std::optional<std::string> FindExcess(const Limit& limit, std::vector<Admission> admissions,
                                      const PromiseTerms& terms);

// The most that may be charged on a key, by what is known: enough to deny `cost` at `at`?
bool MayDeny(const Limit& limit, const std::vector<Admission>& charged, std::int64_t unknown,
             Duration at, std::int64_t cost, Duration wall_offset);

}  // namespace weir::sim
