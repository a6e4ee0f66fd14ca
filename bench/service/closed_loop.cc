#include <cstdio>
#include <vector>

#include "clients.h"
#include "harness/require.h"
#include "load.h"

namespace weir::bench {

void RunClosedLoop(const LoadOptions& options, std::size_t depth) {
  constexpr auto kPatience = std::chrono::seconds(5);
  RequestSequence requests({.kind = options.kind, .keys = options.keys, .deepest = depth});
  Clients clients(options, requests);
  std::vector<std::size_t> unanswered(clients.size(), depth);
  for (std::size_t i = 0; i < clients.size(); ++i) clients.Send(i, requests.Next(depth));

  LoadMeasurement measurement(options);
  SteadyTime last_reply = Clock();
  for (SteadyTime now = last_reply; !measurement.IsOver(now); now = Clock()) {
    std::size_t answered = 0;
    clients.Poll([&](std::size_t client, std::size_t replies) {
      Require(replies <= unanswered[client], "there are no more replies than requests");
      answered += replies;
      unanswered[client] -= replies;
      if (unanswered[client] > 0) return;
      unanswered[client] = depth;
      clients.Send(client, requests.Next(depth));
    });
    if (answered > 0) last_reply = now;
    Require(now - last_reply < kPatience, "the server answers all requests");
    if (measurement.HasBegun(now)) measurement.Count(answered);
  }
  std::printf("{");
  measurement.PrintFields();
  std::printf("}\n");
}

}  // namespace weir::bench
