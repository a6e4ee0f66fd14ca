// long
// The client for Redis against the oracle, on random traces in a simulated world: one server, three
// shards, a cluster. The path is the whole one of a request, from the store's interface over
// connections to the script and back; only the kernel and the server are not the real ones.
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "shared_options.h"
#include "simulated_store.h"
#include "store_subject.h"
#include "trace.h"
#include "trace_run.h"

namespace weir::conformance {
namespace {

// For each family and layout.
constexpr std::uint64_t kFewerServerTraces = 100;

// `spec` is that of the trace, unless a mistake is planted.
std::optional<std::string> RunOnSimulator(const Trace& trace, Servers servers,
                                          const LimitSpec& spec) {
  const auto limit = SharedLimit(spec);
  if (!limit) return "refused: " + limit.error().message;
  SimulatedStore store(servers, trace.seed, trace.start.wall);
  // Another key for every trace, so that every server gets its share.
  StoreSubject subject(store, *limit, "user=" + std::to_string(trace.seed));
  subject.HearTimeFirst();
  if (auto wrong = Replay(trace, subject)) return wrong;
  const std::string problem = store.Problem();
  return problem.empty() ? std::nullopt : std::optional(problem);
}

TraceOptions OnlyForward() {
  TraceOptions options = SharedOptions();
  options.only_forward = true;
  return options;
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
  const TraceOptions options = OnlyForward();
  const auto trial = [servers](const Trace& trace) {
    return RunOnSimulator(trace, servers, trace.spec);
  };
  EXPECT_EQ(RunTraces(family, options, trial, kFewerServerTraces), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, SimulatedStoreOracle,
                         testing::Combine(testing::Values(Servers::kOne, Servers::kThreeShards,
                                                          Servers::kCluster),
                                          testing::ValuesIn(kEveryFamily)),
                         [](const auto& one) {
                           return std::string(NameOf(std::get<0>(one.param))) +
                                  std::string(NameOf(std::get<1>(one.param)));
                         });

// What finds nothing is worth something only if it finds what is there.
TEST(SimulatedStoreTrial, FindsALimitThatIsOneTooHigh) {
  for (const Family family : kEveryFamily) {
    const auto trial = [](const Trace& trace) {
      LimitSpec higher = trace.spec;
      ++higher.count;
      return RunOnSimulator(trace, Servers::kOne, higher);
    };
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      if (trial(MakeTrace(family, seed, OnlyForward()))) ++found;
    }
    EXPECT_GT(found, 10) << NameOf(family);
  }
}

class OneKey {
 public:
  OneKey(SimulatedStore& store, const Limit& limit, std::string key)
      : subject_(store, limit, std::move(key)) {}

  // What is taken is kept as step 0.
  Decision Take() { return subject_.Do({.keeps = Keeps::kReceipt}, At(Duration(0))); }
  Decision GiveBack(Duration after) {
    return subject_.Do({.number = 1, .verb = TraceVerb::kSettle, .cost = 0, .of = 0}, At(after));
  }
  const std::optional<Error>& error() const { return subject_.error(); }

  // Late in a millisecond.
  static constexpr WallTime kStart =
      WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) +
      std::chrono::microseconds(999);

 private:
  static Now At(Duration after) {
    return {SteadyTime(kStart.time_since_epoch() + after), kStart + after};
  }
  StoreSubject subject_;
};

TEST(SimulatedStore, SaysThatAKeyWouldStayForEver) {
  SimulatedStore store(Servers::kThreeShards, 1, OneKey::kStart);
  OneKey(store, *Limit::Parse("5/min"), "user=ann").Take();
  EXPECT_EQ(store.Problem(), "");
  store.servers()[1]->core().Execute({"SET", "stays", "1"});
  EXPECT_EQ(store.Problem(), "no expiry: stays");
}

TEST(SimulatedStore, UsesEveryServer) {
  for (const Servers servers : {Servers::kThreeShards, Servers::kCluster}) {
    SimulatedStore store(servers, 1, OneKey::kStart);
    for (int i = 0; i < 30; ++i) {
      OneKey(store, *Limit::Parse("5/min"), "user=" + std::to_string(i)).Take();
    }
    for (const auto& server : store.servers()) {
      EXPECT_FALSE(server->core().keyspace().Keys().empty()) << NameOf(servers);
    }
  }
}

TEST(SimulatedStore, TakesALeaseBackUntilItsVeryEnd) {
  using namespace std::chrono_literals;
  for (const Servers servers : {Servers::kOne, Servers::kThreeShards, Servers::kCluster}) {
    SimulatedStore store(servers, 1, OneKey::kStart);
    OneKey key(store, *Limit::Parse("5 concurrent lease 1s"), "user=ann");
    EXPECT_EQ(key.Take().remaining, 4);
    EXPECT_EQ(key.GiveBack(1s - 1us).remaining, 5);
    EXPECT_EQ(key.error(), std::nullopt) << NameOf(servers);
  }
}

}  // namespace
}  // namespace weir::conformance
