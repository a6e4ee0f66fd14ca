// What a run comes to in numbers, and whether that is what the scenario expects.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/fleet/record.h"
#include "lab/fleet/scenario.h"

namespace weir::lab {

struct Tally {
  std::uint64_t requests = 0;
  std::uint64_t admitted = 0;
  std::uint64_t denied = 0;
  std::map<Source, std::uint64_t> by_source{};

  void Add(const Asked& asked);
  std::uint64_t By(Source source) const;
};

struct Measures {
  Tally all{};
  std::uint64_t lost = 0;       // Their node ended before it answered.
  std::uint64_t unreached = 0;  // Nobody was there to take them.
  Duration degraded{0};         // The longest of any node.
  Duration median_latency{0};
  Duration most_latency{0};
  Duration p99_latency{0};
  std::vector<Tally> by_node{};
  std::vector<Tally> by_client_group{};  // In the order of the scenario.
  // By rule, as each of them decided; shadows, too.
  struct RuleTally {
    std::uint64_t allowed = 0;
    std::uint64_t denied = 0;
    std::uint64_t shadow_denied = 0;
  };
  std::vector<RuleTally> by_rule{};  // In the order of Record::rules.

  // How many, what part, or how many seconds.
  double ValueOf(Measure measure, bool is_share) const;
};

Measures MeasuresOf(const Scenario& scenario, const Record& record);

// What was expected and is not so, in words.
std::vector<std::string> UnmetExpectations(const Scenario& scenario, const Measures& measures);

}  // namespace weir::lab
