// weir compare: what does this limit mean, by each algorithm?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/console.h"

namespace weir {

struct CompareOptions {
  std::string limit{};  // 100/s; not needed with --advise.
  std::int64_t burst = 0;
  std::string traffic = "poisson";
  double load = 0;  // How much is offered, as a multiple of the limit; 0: as the traffic says.
  std::string duration{};  // 60s; empty: as the traffic says.
  std::uint64_t seed = 1;
  bool advise = false;
  std::vector<std::string> answers{};  // bursts=yes: what advise need not ask.
  std::string html{};
  std::string svg{};
  bool json = false;
};

int RunCompare(const CompareOptions& options, const Console& console);

}  // namespace weir
