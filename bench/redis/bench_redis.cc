// Load on a Redis that keeps limits: the usual way, and ours. Prints JSON.
//
//   bench_redis usual PORT SERVER KEYS WARM_UP SECONDS CONNECTIONS
//   bench_redis closed PORT SERVER KEYS WARM_UP SECONDS IN_FLIGHT RULES
//   bench_redis open PORT SERVER KEYS WARM_UP SECONDS RATE RULES
//
// SERVER is the id of the process whose processor time is charged.
#include <cstdio>
#include <string>
#include <vector>

#include "our_way.h"
#include "usual_way.h"

namespace weir::bench {
namespace {

using Words = std::vector<std::string>;

Duration Seconds(const std::string& word) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::stod(word)));
}

int Main(const Words& words) {
  const std::string how = words.empty() ? "" : words[0];
  if (words.size() != (how == "usual" ? 7 : 8)) {
    std::fprintf(stderr,
                 "usage: bench_redis usual PORT SERVER KEYS WARM_UP SECONDS CONNECTIONS\n"
                 "       bench_redis closed PORT SERVER KEYS WARM_UP SECONDS IN_FLIGHT RULES\n"
                 "       bench_redis open PORT SERVER KEYS WARM_UP SECONDS RATE RULES\n");
    return 2;
  }
  const RunOptions options{.port = static_cast<std::uint16_t>(std::stoi(words[1])),
                           .server = std::stoi(words[2]),
                           .keys = std::stoull(words[3]),
                           .warm_up = Seconds(words[4]),
                           .length = Seconds(words[5])};
  if (how == "usual") {
    RunUsualWay(options, std::stoul(words[6]));
  } else if (how == "closed") {
    RunOurWay(options, {.rules = std::stoul(words[7]), .in_flight = std::stoul(words[6])});
  } else {
    RunOurWay(options, {.rules = std::stoul(words[7]), .rate = std::stod(words[6])});
  }
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main({argv + 1, argv + argc}); }
