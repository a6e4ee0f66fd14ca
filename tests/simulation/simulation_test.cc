// long
// Thousands of fleets under thousands of misfortunes. A failure prints its seed:
//
//   WEIR_SIM_SEED=n     that one only
//   WEIR_SIM_SEEDS=n    seeds 1 to n
//   WEIR_SHORT=1        a fifth of the usual number of seeds
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "judge.h"
#include "scenario.h"

namespace weir::simulation {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Outcome {
  std::string description;
  std::vector<std::string> broken;
  std::uint64_t fingerprint = 0;
  std::size_t requests = 0;
};

Outcome RunSeed(std::uint64_t seed, sim::LuaEngine& engine, Mistake mistake = Mistake::kNone) {
  Scenario scenario(seed, engine, mistake);
  scenario.Run();
  return {.description = scenario.Describe(),
          .broken = Judge(scenario),
          .fingerprint = scenario.fingerprint(),
          .requests = scenario.asked().size()};
}

std::string Text(const Outcome& outcome) {
  std::string text = outcome.description;
  for (const std::string& broken : outcome.broken) text += "    " + broken + "\n";
  return text;
}

TEST(Simulation, KeepsEveryPromiseUnderEveryFault) {
  const std::uint64_t one = FromEnvironment("WEIR_SIM_SEED", 0);
  const std::uint64_t usual =
      FromEnvironment("WEIR_SHORT", 0) != 0 ? WEIR_SIM_SEEDS / 5 : WEIR_SIM_SEEDS;
  const std::uint64_t seeds = one != 0 ? one : FromEnvironment("WEIR_SIM_SEEDS", usual);
  std::atomic<std::uint64_t> next = one != 0 ? one : 1;
  std::atomic<std::size_t> requests = 0;
  std::mutex mutex;
  std::vector<std::string> failures;
  const auto work = [&] {
    sim::LuaEngine engine;
    for (std::uint64_t seed = next++; seed <= seeds; seed = next++) {
      const Outcome outcome = RunSeed(seed, engine);
      requests += outcome.requests;
      if (outcome.broken.empty()) continue;
      const std::lock_guard lock(mutex);
      failures.push_back(Text(outcome));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu requests\n", requests.load());
  for (std::size_t i = 0; i < std::min<std::size_t>(failures.size(), 40); ++i) {
    ADD_FAILURE() << failures[i];
  }
  EXPECT_EQ(failures.size(), 0U);
}

TEST(Simulation, RunsTheSameForTheSameSeed) {
  sim::LuaEngine engine;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Outcome first = RunSeed(seed, engine);
    EXPECT_EQ(first.fingerprint, RunSeed(seed, engine).fingerprint) << first.description;
  }
}

// A judge who finds nothing is worth something only if he finds what is there.
class PlantedMistake : public testing::TestWithParam<Mistake> {};

bool IsFoundIn(sim::LuaEngine& engine, Mistake mistake) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    if (!RunSeed(seed, engine, mistake).broken.empty()) return true;
  }
  return false;
}

TEST_P(PlantedMistake, IsFound) {
  sim::LuaEngine engine;
  EXPECT_TRUE(IsFoundIn(engine, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, PlantedMistake,
                         testing::Values(Mistake::kRepeatsWhatTimedOut,
                                         Mistake::kReplaysAfterOutage, Mistake::kAnswersTwice,
                                         Mistake::kForgetsAnAnswer, Mistake::kLetsThroughWhenClosed,
                                         Mistake::kKeepsWhatIsCancelled, Mistake::kRefundsTwice));

// The same for mistakes of the script.
struct ScriptMistake {
  const char* name;
  const char* right;
  const char* wrong;
};

class PlantedInScript : public testing::TestWithParam<ScriptMistake> {};

TEST_P(PlantedInScript, IsFound) {
  bool is_edited = false;
  sim::LuaEngine::Options options;
  options.edit = [&is_edited](std::string text) {
    const std::string right = GetParam().right;
    const std::size_t at = text.find(right);
    if (at == std::string::npos) return text;
    is_edited = true;
    return text.replace(at, right.size(), GetParam().wrong);
  };
  sim::LuaEngine engine(options);
  EXPECT_TRUE(IsFoundIn(engine, Mistake::kNone));
  EXPECT_TRUE(is_edited) << "the script has changed";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedInScript,
    testing::Values(
        ScriptMistake{"ChargesOnDenial", "local takes = ok and passed[c]",
                      "local takes = passed[c]"},
        ScriptMistake{"LetsOneMoreThroughAWindow", "fits(j, count) end\n\n  local after",
                      "fits(j, count - 1) end\n\n  local after"},
        ScriptMistake{"RefundsTwiceOnALog", "give_back(k, log, cost)\n",
                      "give_back(k, log, 2 * cost)\n"},
        ScriptMistake{"LetsTheLastSayHowToSettle", "sub(text, 1, 3) == 'W2\\0' and ", ""},
        ScriptMistake{"SettlesTwice", "call('DEL', KEYS[record]) == 1",
                      "call('DEL', KEYS[record]) <= 1"}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace weir::simulation
