// The client for Redis against the oracle, on random traces in a simulated world: one server, three
// shards, a cluster. The path is the whole one of a request, from the store's interface over
// connections to the script and back; only the kernel and the server are not the real ones.
#include <optional>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "shared_options.h"
#include "simulated_store.h"
#include "store_subject.h"
#include "trace.h"
#include "trace_run.h"

namespace weir::conformance {
namespace {

// For each family and layout.
constexpr std::uint64_t kFewer = 100;

std::optional<std::string> RunOnSimulator(const Trace& trace, Servers servers) {
  const auto limit = SharedLimit(trace.spec);
  if (!limit) return "refused: " + limit.error().message;
  SimulatedStore store(servers, trace.seed, trace.start.wall);
  // Another key for every trace, so that every server gets its share.
  StoreSubject subject(store, *limit, "user=" + std::to_string(trace.seed));
  if (auto wrong = Replay(trace, subject)) return wrong;
  const std::string problem = store.Problem();
  return problem.empty() ? std::nullopt : std::optional(problem);
}

std::string_view NameOf(Servers servers) {
  switch (servers) {
    case Servers::kOne:
      return "OneServer";
    case Servers::kThreeShards:
      return "ThreeShards";
    case Servers::kCluster:
      return "Cluster";
  }
  return "";
}

class SimulatedStoreOracle : public testing::TestWithParam<std::tuple<Servers, Family>> {};

TEST_P(SimulatedStoreOracle, AgreesAtEveryStepWhateverIsAsked) {
  const auto [servers, family] = GetParam();
  TraceOptions options = SharedOptions();
  options.only_forward = true;
  const auto trial = [servers](const Trace& trace) { return RunOnSimulator(trace, servers); };
  EXPECT_EQ(RunTraces(family, options, trial, kFewer), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, SimulatedStoreOracle,
                         testing::Combine(testing::Values(Servers::kOne, Servers::kThreeShards,
                                                          Servers::kCluster),
                                          testing::ValuesIn(kEveryFamily)),
                         [](const auto& one) {
                           return std::string(NameOf(std::get<0>(one.param))) +
                                  std::string(NameOf(std::get<1>(one.param)));
                         });

}  // namespace
}  // namespace weir::conformance
