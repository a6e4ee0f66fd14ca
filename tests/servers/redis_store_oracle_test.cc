// Every algorithm on real servers against the oracle. The servers' own clocks say when a request
// was decided; the oracle is asked the same as of that time, and must say the same in every field.
//
// WEIR_SEED=n   repeat a run (the seed is printed; times differ, because they are the servers')
// WEIR_STEPS=n  steps per algorithm (default 8,000)
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "shared_options.h"
#include "store_on_servers.h"
#include "store_subject.h"
#include "trace_maker.h"
#include "trace_run.h"

namespace weir::conformance {
namespace {

using on_servers::ServersClock;
using on_servers::StoreOnServers;

constexpr std::uint64_t kFewer = 125;

Now AsOf(WallTime wall) { return {SteadyTime(wall.time_since_epoch()), wall}; }

// A lease may end while the request to give it back is under way; then nobody knows it any more.
bool EndedByItself(const Trace& trace, const TraceStep& step) {
  if (trace.spec.algorithm != Algorithm::kConcurrency || step.action.verb != TraceVerb::kSettle) {
    return false;
  }
  const TraceStep& taken = trace.steps[static_cast<std::size_t>(step.action.of)];
  return taken.action.keeps != Keeps::kReservation &&
         taken.now.steady + trace.spec.lease <= step.now.steady;
}

// What went wrong first.
std::optional<std::string> RunOnServers(TraceMaker& maker, StoreOnServers& store) {
  const Trace& trace = maker.trace();
  const auto limit = SharedLimit(trace.spec);
  if (!limit) return "refused: " + limit.error().message;
  StoreSubject subject(store, *limit, "user=" + std::to_string(trace.seed));
  subject.HearTimeFirst();
  while (maker.HasNext()) {
    const TraceStep& next = maker.Next();
    store.clock().MoveTo(next.now.wall);
    const Decision decision = subject.Do(next.action, next.now);
    const auto& error = subject.error();
    if (error && error->code != ErrorCode::kNotFound) return error->message;
    const TraceStep& step = maker.Answer(AsOf(subject.decided_at()));
    if (error) {
      if (EndedByItself(trace, step)) continue;
      return error->message;
    }
    if (auto difference = Difference(step.expected, decision)) return difference;
  }
  return std::nullopt;
}

class RedisStoreOracle : public testing::TestWithParam<Family> {
 protected:
  static void SetUpTestSuite() {
    const auto settings = on_servers::SettingsFromEnvironment();
    if (settings) store_ = new StoreOnServers(*settings);
  }
  static void TearDownTestSuite() {
    delete store_;
    store_ = nullptr;
  }

  static StoreOnServers* store_;
};
StoreOnServers* RedisStoreOracle::store_ = nullptr;

TEST_P(RedisStoreOracle, AgreesWithRealServersAtEveryStep) {
  ASSERT_NE(store_, nullptr) << "WEIR_TEST_SERVERS names no servers";
  ASSERT_TRUE(store_->AwaitConnection());
  const auto run = [](std::uint64_t seed) -> SeedRun {
    ServersClock& clock = store_->clock();
    clock.MoveBack();
    TraceOptions options = SharedOptions();
    options.only_forward = true;
    options.start = AsOf(clock.Read().wall);
    TraceMaker maker(GetParam(), seed, options);
    std::optional<std::string> wrong = RunOnServers(maker, *store_);
    if (wrong) *wrong += "\n" + Describe(maker.trace());
    return {.steps = maker.trace().steps.size(), .wrong = wrong};
  };
  EXPECT_EQ(RunSeeds(GetParam(), kFewer, run), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, RedisStoreOracle, testing::ValuesIn(kEveryFamily),
                         [](const auto& family) { return std::string(NameOf(family.param)); });

}  // namespace
}  // namespace weir::conformance
