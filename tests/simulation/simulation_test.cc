// Thousands of fleets under thousands of misfortunes. A failure prints its seed:
//
//   WEIR_SIM_SEED=n     that one only
//   WEIR_SIM_SEEDS=n    so many, from 1 on
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
  const std::uint64_t seeds = one != 0 ? one : FromEnvironment("WEIR_SIM_SEEDS", WEIR_SIM_SEEDS);
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

TEST_P(PlantedMistake, IsFound) {
  sim::LuaEngine::Options options;
  bool is_edited = GetParam() != Mistake::kChargesOnDenial;
  if (!is_edited) {
    options.edit = [&is_edited](std::string text) {
      const std::string right = "local takes = ok and passed[c]";
      const std::size_t at = text.find(right);
      if (at == std::string::npos) return text;
      is_edited = true;
      return text.replace(at, right.size(), "local takes = passed[c]");
    };
  }
  sim::LuaEngine engine(options);
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 60 && found == 0; ++seed) {
    if (!RunSeed(seed, engine, GetParam()).broken.empty()) ++found;
  }
  EXPECT_GT(found, 0);
  EXPECT_TRUE(is_edited) << "the script has changed";
}

INSTANTIATE_TEST_SUITE_P(All, PlantedMistake,
                         testing::Values(Mistake::kRepeatsWhatTimedOut,
                                         Mistake::kReplaysAfterOutage, Mistake::kAnswersTwice,
                                         Mistake::kForgetsAnAnswer, Mistake::kLetsThroughWhenClosed,
                                         Mistake::kChargesOnDenial, Mistake::kKeepsWhatIsCancelled,
                                         Mistake::kRefundsTwice));

}  // namespace
}  // namespace weir::simulation
