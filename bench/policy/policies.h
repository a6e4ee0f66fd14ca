// Policies of any size for the requests of this benchmark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <weir/policy.h>

namespace weir::bench {

// Which rules a request meets, whatever else there is.
enum class Hits : std::uint8_t {
  kUser,      // One: its user's.
  kSame,      // Three that are the same for every request: by address, user, user and area.
  kEndpoint,  // Three: by address, by user, and that of the area, of which there are 256.
};

struct PolicyOptions {
  std::size_t rules = 3;  // The others apply to none of the requests, though some come close.
  Hits hits = Hits::kSame;
  bool hashed = false;            // The user is kept as a keyed hash only.
  std::string limit = "10G/day";  // Of every rule.
};
PolicySpec MakeSpec(const PolicyOptions& options);
Policy MakePolicy(const PolicyOptions& options);

}  // namespace weir::bench
