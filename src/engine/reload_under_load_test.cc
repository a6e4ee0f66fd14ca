// threads
// Policies are replaced as fast as they can be while threads decide: every decision is made under
// one of them as a whole, and none is lost.
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

constexpr int kCheckingThreads = 4;
constexpr int kApplies = 1'000;

// A and B share nothing but the rule that counts everything, and differ in all they have.
std::string PolicyNamed(char letter, int limit) {
  const std::string name(1, letter);
  const std::string limits = std::to_string(limit) + "G/h";
  std::string yaml = "rules:\n";
  for (const char* number : {"1", "2", "3"}) {
    yaml += "  - { name: " + name + number + ", key: user, limit: " + limits +
            ", message: " + name + " }\n";
  }
  yaml += "  - { name: shared, key: global, limit: 1G/day, algorithm: fixed_window }\n";
  // The last one denies whoever asks for it.
  yaml += "  - { name: " + name +
          "-never, match: { path: /never }, key: user, limit: deny, message: " + name + " }\n";
  return yaml;
}

// What one thread saw.
struct Seen {
  std::int64_t admitted = 0;
  std::int64_t denied = 0;
  std::int64_t under_a = 0;
  std::int64_t mixed = 0;
};

class Decider {
 public:
  explicit Decider(Engine& engine, int number)
      : engine_(engine), user_("user" + std::to_string(number)) {}

  void Once() {
    const bool never = (++count_ % 4) == 0;
    const Request request{.user = user_, .path = never ? "/never" : "/"};
    const Answer answer = engine_.Check(request, {}, each_);
    Look(answer, never);
  }
  const Seen& seen() const { return seen_; }

 private:
  void Look(const Answer& answer, bool never) {
    const char letter = each_[0].decision.rule[0];
    const bool is_a = letter == 'a';
    const std::int64_t limit = is_a ? 1'000'000'000 : 2'000'000'000;
    bool whole = answer.rules == (never ? 5U : 4U) && answer.decision.allowed != never;
    for (std::size_t i = 0; i < 3; ++i) {
      const Decision& decision = each_[i].decision;
      whole = whole && decision.rule == std::string{letter, static_cast<char>('1' + i)} &&
              decision.limit == limit;
    }
    whole = whole && each_[3].decision.rule == "shared";
    if (never) {
      whole = whole && answer.message.size() == 1 && answer.message[0] == letter &&
              each_[4].decision.rule == std::string(1, letter) + "-never";
    }
    if (!whole) ++seen_.mixed;
    if (is_a) ++seen_.under_a;
    ++(answer.decision.allowed ? seen_.admitted : seen_.denied);
  }

  Engine& engine_;
  const std::string user_;
  std::int64_t count_ = 0;
  std::array<RuleDecision, 5> each_;
  Seen seen_;
};

TEST(ReloadUnderLoad, NeverMixesVersionsAndLosesNoDecision) {
  const Policy a = PolicyOf(PolicyNamed('a', 1));
  const Policy b = PolicyOf(PolicyNamed('b', 2));
  EngineUnderTest under_test(a);
  std::atomic<bool> done{false};
  std::atomic<std::int64_t> decisions{0};
  std::vector<Seen> seen(kCheckingThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kCheckingThreads; ++i) {
      threads.emplace_back([&, i] {
        Decider decider(under_test.engine, i);
        while (!done) {
          decider.Once();
          ++decisions;
          std::this_thread::yield();
        }
        seen[static_cast<std::size_t>(i)] = decider.seen();
      });
    }
    for (int i = 1; i <= kApplies; ++i) {
      // Some decisions must fall under each.
      const std::int64_t before = decisions;
      while (decisions < before + 10) std::this_thread::yield();
      ASSERT_TRUE(under_test.engine.Apply(i % 2 == 1 ? b : a));
    }
    done = true;
  }
  Seen all;
  for (const Seen& one : seen) {
    all.admitted += one.admitted;
    all.denied += one.denied;
    all.under_a += one.under_a;
    all.mixed += one.mixed;
  }
  EXPECT_EQ(all.mixed, 0);
  EXPECT_EQ(all.admitted + all.denied, decisions);
  EXPECT_GE(decisions, 10 * kApplies);
  EXPECT_GT(all.under_a, 0);
  EXPECT_LT(all.under_a, decisions);
  EXPECT_EQ(under_test.engine.Stats().version, 1U + kApplies);
  // Every admission was counted once, and no denial.
  EXPECT_EQ(1'000'000'000 - under_test.Remaining("shared", {.user = "x", .path = "/"}),
            all.admitted);
}

// The same rule, now tight and now wide: what it admitted is counted whichever limit it had.
TEST(ReloadUnderLoad, LosesNoChargeWhileALimitChanges) {
  const auto policy = [](std::string_view limit) {
    return PolicyOf("rules:\n  - { name: r, key: user, limit: " + std::string(limit) +
                    ", algorithm: fixed_window }\n");
  };
  const Policy narrow = policy("1G/day");
  const Policy wide = policy("2G/day");
  EngineUnderTest under_test(narrow);
  std::atomic<bool> done{false};
  std::atomic<std::int64_t> decisions{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kCheckingThreads; ++i) {
      threads.emplace_back([&] {
        while (!done) {
          EXPECT_TRUE(under_test.engine.Check({.user = "ann"}).decision.allowed);
          ++decisions;
          std::this_thread::yield();
        }
      });
    }
    for (int i = 1; i <= 200; ++i) {
      const std::int64_t before = decisions;
      while (decisions < before + 4) std::this_thread::yield();
      ASSERT_TRUE(under_test.engine.Apply(i % 2 == 1 ? wide : narrow));
    }
    done = true;
  }
  // Doubled and halved a hundred times: what was charged under the wide limit counts for half of
  // it in the end, rounded up, and never for less.
  const std::int64_t used = 1'000'000'000 - under_test.Remaining("r", {.user = "ann"});
  EXPECT_GE(used, decisions / 2);
  EXPECT_LE(used, decisions + 200);
}

}  // namespace
}  // namespace weir
