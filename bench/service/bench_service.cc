// A load generator for services that speak RESP or HTTP. Prints JSON.
//
//   bench_service closed KIND PORT SERVER CONNECTIONS KEYS WARM_UP SECONDS DEPTH
//   bench_service open KIND PORT SERVER CONNECTIONS KEYS|new WARM_UP SECONDS RATE
//   bench_service hold idle|slow CONNECTIONS RESP_PORT HTTP_PORT
//
// KIND is what is asked: incr, throttle, check, http-get, http-check or http-auth. SERVER is the
// id of the process whose processor time is charged.
#include <cstdio>
#include <string>
#include <vector>

#include "load.h"

namespace weir::bench {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kLoadWords = 9;

Duration Seconds(const std::string& word) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::stod(word)));
}

std::uint16_t Port(const std::string& word) { return static_cast<std::uint16_t>(std::stoi(word)); }

LoadOptions LoadOptionsOf(const Words& words, RequestKind kind) {
  const bool new_keys = words[5] == "new";
  return {.kind = kind,
          .port = Port(words[2]),
          .server = std::stoi(words[3]),
          .connections = std::stoul(words[4]),
          .keys = new_keys ? 0 : std::stoull(words[5]),
          .warm_up = Seconds(words[6]),
          .length = Seconds(words[7])};
}

int Usage() {
  std::fprintf(
      stderr,
      "usage: bench_service closed KIND PORT SERVER CONNECTIONS KEYS WARM_UP SECONDS DEPTH\n"
      "       bench_service open KIND PORT SERVER CONNECTIONS KEYS|new WARM_UP SECONDS RATE\n"
      "       bench_service hold idle|slow CONNECTIONS RESP_PORT HTTP_PORT\n");
  return 2;
}

int Main(const Words& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "hold" && words.size() == 5) {
    HoldConnections({.traffic = words[1] == "slow" ? HeldTraffic::kByteASecond : HeldTraffic::kNone,
                     .connections = std::stoul(words[2]),
                     .resp_port = Port(words[3]),
                     .http_port = Port(words[4])});
    return 0;
  }
  const std::optional<RequestKind> kind =
      words.size() == kLoadWords ? RequestKindOf(words[1]) : std::nullopt;
  if (!kind) return Usage();
  if (command == "closed") {
    RunClosedLoop(LoadOptionsOf(words, *kind), std::stoul(words[8]));
  } else if (command == "open") {
    RunOpenLoop(LoadOptionsOf(words, *kind),
                {.rate = std::stod(words[8]), .new_keys = words[5] == "new"});
  } else {
    return Usage();
  }
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main({argv + 1, argv + argc}); }
