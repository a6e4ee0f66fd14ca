// threads
// Who is denied too often is shut out for a while.
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::string_view kBanningPolicy = R"(
rules:
  - name: login
    match: { path: /login }
    key: ip
    limit: 5/min
    algorithm: sliding_log
    message: Too many attempts
    block: { after: 10 denials in 1min, for: 10min, growing: 2x up to 1day }
)";
constexpr Request kMallory{.ip = "192.0.2.66", .path = "/login"};
constexpr Request kAnnAtLogin{.ip = "192.0.2.1", .path = "/login"};

class Ban : public testing::Test {
 protected:
  Decision Check(const Request& request = kMallory) { return under_test_.Check(request); }
  void UseUp(const Request& request = kMallory) {
    while (Check(request).allowed) {  // The last of these is the first denial.
    }
  }
  // Knocks until the answer is a ban; the retry_after that comes with it.
  Duration GetBanned(const Request& request = kMallory) {
    for (int i = 0; i < 100; ++i) {
      const Decision decision = Check(request);
      if (decision.reason == Reason::kBanned) return decision.retry_after;
    }
    ADD_FAILURE() << "no ban";
    return Duration(0);
  }

  EngineUnderTest under_test_{kBanningPolicy};
};

TEST_F(Ban, ComesWithTheTenthDenialWhichSaysSo) {
  UseUp();
  for (int i = 2; i <= 9; ++i) EXPECT_EQ(Check().reason, Reason::kLimited) << i;
  std::array<RuleDecision, 1> each;
  const Answer tenth = under_test_.engine.Check(kMallory, {}, each);
  EXPECT_FALSE(tenth.decision.allowed);
  EXPECT_EQ(tenth.decision.reason, Reason::kBanned);
  EXPECT_EQ(tenth.decision.retry_after, minutes(10));
  EXPECT_EQ(tenth.decision.rule, "login");
  EXPECT_EQ(tenth.decision.limit, 5);
  EXPECT_EQ(tenth.decision.remaining, 0);
  EXPECT_EQ(tenth.message, "Too many attempts");
  EXPECT_EQ(each[0].decision.reason, Reason::kBanned);
}

TEST_F(Ban, HoldsThoughTheLimitHasRoomAgainAndEndsOnTime) {
  GetBanned();
  under_test_.clock.Advance(minutes(5));
  std::array<RuleDecision, 1> each;
  const Answer banned = under_test_.engine.Check(kMallory, {}, each);
  EXPECT_EQ(banned.decision.reason, Reason::kBanned);
  EXPECT_EQ(banned.decision.retry_after, minutes(5));
  EXPECT_EQ(banned.decision.rule, "login");
  EXPECT_EQ(banned.decision.limit, 5);
  EXPECT_EQ(banned.decision.cost, 1);
  EXPECT_EQ(banned.message, "Too many attempts");
  EXPECT_FALSE(each[0].decision.allowed);
  EXPECT_EQ(each[0].decision.reason, Reason::kBanned);
  under_test_.clock.Advance(minutes(5) - std::chrono::nanoseconds(1));
  EXPECT_EQ(Check().reason, Reason::kBanned);
  under_test_.clock.Advance(std::chrono::nanoseconds(1));
  EXPECT_TRUE(Check().allowed);
}

TEST_F(Ban, TakesNothingFromOtherRulesWhileItHolds) {
  under_test_.Apply(std::string(kBanningPolicy) + "  - { name: all, key: ip, limit: 100/day }\n");
  GetBanned();
  const std::int64_t before = under_test_.Remaining("all", {.ip = kMallory.ip, .path = "/"});
  for (int i = 0; i < 20; ++i) Check();
  EXPECT_EQ(under_test_.Remaining("all", {.ip = kMallory.ip, .path = "/"}), before);
}

TEST_F(Ban, IsNotProlongedByThoseWhoKeepKnocking) {
  GetBanned();
  for (int i = 0; i < 599; ++i) {
    under_test_.clock.Advance(seconds(1));
    EXPECT_EQ(Check().retry_after, seconds(599 - i));
  }
  under_test_.clock.Advance(seconds(1));
  EXPECT_TRUE(Check().allowed);
}

TEST_F(Ban, GrowsFromTimeToTimeAndNotBeyondItsCap) {
  Duration longest{0};
  for (const int length : {10, 20, 40, 80, 160, 320, 640, 1280}) {
    const Duration banned = GetBanned();
    EXPECT_EQ(banned, minutes(length));
    under_test_.clock.Advance(banned);
  }
  for (int i = 0; i < 20; ++i) {
    const Duration banned = GetBanned();
    EXPECT_GE(banned, minutes(1280));
    longest = std::max(longest, banned);
    under_test_.clock.Advance(banned);
  }
  EXPECT_EQ(longest, hours(24));
}

TEST_F(Ban, ForgetsOneStepForEveryCapThatPasses) {
  for (int i = 0; i < 3; ++i) under_test_.clock.Advance(GetBanned());  // 10, 20 and 40 minutes.
  under_test_.clock.Advance(hours(24));
  EXPECT_EQ(GetBanned(), minutes(40));  // Two are left of three.
  under_test_.clock.Advance(hours(24 * 10));
  EXPECT_EQ(GetBanned(), minutes(10));
}

TEST_F(Ban, StaysTheSameWhereItDoesNotGrow) {
  under_test_.Apply(
      "rules:\n  - { name: r, key: ip, limit: 1/min, block: { after: 2 denials in 1min, for: 5min "
      "} }\n");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(GetBanned(), minutes(5));
    under_test_.clock.Advance(minutes(5));
  }
}

TEST_F(Ban, DoesNotComeOfDenialsFarApart) {
  UseUp();
  for (int i = 0; i < 100; ++i) {
    under_test_.clock.Advance(seconds(7));  // At most nine in any minute.
    while (Check().allowed) {
    }
    EXPECT_NE(under_test_.Peek(kMallory).reason, Reason::kBanned) << i;
  }
}

TEST_F(Ban, IsNotBroughtAboutByPeeksAndQuestions) {
  UseUp();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(under_test_.Peek(kMallory).reason, Reason::kLimited);
    EXPECT_EQ(under_test_.Check(kMallory, 0).reason, Reason::kLimited);
  }
  for (int i = 2; i <= 9; ++i) EXPECT_EQ(Check().reason, Reason::kLimited);
  EXPECT_EQ(Check().reason, Reason::kBanned);
  EXPECT_EQ(under_test_.Peek(kMallory).reason, Reason::kBanned);
}

TEST_F(Ban, DoesNotComeOfWhatCanNeverFit) {
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(under_test_.Check(kMallory, 6).reason, Reason::kNeverFits);
  }
  EXPECT_TRUE(Check().allowed);
}

TEST_F(Ban, LeavesOthersAlone) {
  GetBanned();
  EXPECT_TRUE(Check(kAnnAtLogin).allowed);
  EXPECT_EQ(under_test_.Check({.ip = kMallory.ip, .path = "/"}).reason, Reason::kNoRule);
}

TEST_F(Ban, IsCountedForReservationsTooAndRefusesThem) {
  UseUp();
  for (int i = 2; i <= 9; ++i) under_test_.engine.Reserve(kMallory);
  EXPECT_EQ(under_test_.engine.Reserve(kMallory).decision.reason, Reason::kBanned);
  under_test_.clock.Advance(minutes(2));
  const Decision refused = under_test_.engine.Reserve(kMallory).decision;
  EXPECT_EQ(refused.reason, Reason::kBanned);
  EXPECT_EQ(refused.reservation, ReservationId::kNone);
}

TEST_F(Ban, NeverComesOfAShadowRule) {
  under_test_.Apply(
      "rules:\n  - { name: r, key: ip, limit: 1/min, mode: shadow, block: { after: 2 denials in "
      "1min, for: 5min } }\n");
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Check().allowed);
}

TEST_F(Ban, IsLiftedByAReset) {
  GetBanned();
  under_test_.clock.Advance(minutes(10));
  EXPECT_EQ(GetBanned(), minutes(20));
  under_test_.engine.Reset(kMallory);
  EXPECT_TRUE(Check().allowed);
  UseUp();
  for (int i = 2; i <= 9; ++i) EXPECT_EQ(Check().reason, Reason::kLimited);
  EXPECT_EQ(Check().retry_after, minutes(10));  // As if for the first time.
}

TEST_F(Ban, IsLiftedByAResetEvenWhileTheRuleIsAShadow) {
  GetBanned();
  std::string shadow(kBanningPolicy);
  shadow.insert(shadow.find("    message:"), "    mode: shadow\n");
  under_test_.Apply(shadow);
  EXPECT_TRUE(Check().allowed);
  under_test_.engine.Reset(kMallory);
  under_test_.Apply(kBanningPolicy);
  EXPECT_TRUE(Check().allowed);
}

TEST_F(Ban, OutlivesAChangeOfThePolicy) {
  GetBanned();
  std::string changed(kBanningPolicy);
  changed.replace(changed.find("5/min"), 5, "50/min");
  under_test_.Apply(changed);
  EXPECT_EQ(Check().reason, Reason::kBanned);
  under_test_.clock.Advance(minutes(10));
  EXPECT_EQ(under_test_.Exhaust(kMallory), 50);
}

TEST_F(Ban, SpeaksUnlessAnotherRuleKeepsTheRequestOutForLonger) {
  under_test_.Apply(std::string(kBanningPolicy) +
                    "  - { name: daily, key: ip, limit: 5/day, algorithm: fixed_window,"
                    " message: Enough for today }\n");
  UseUp();
  for (int i = 2; i <= 12; ++i) {
    const Answer answer = under_test_.engine.Check(kMallory);
    EXPECT_EQ(answer.decision.rule, "daily");
    EXPECT_EQ(answer.decision.reason, Reason::kLimited);
    EXPECT_EQ(answer.message, "Enough for today");
  }
  under_test_.engine.Reset({.ip = kMallory.ip, .path = "/"});  // The daily rule alone.
  EXPECT_EQ(Check().reason, Reason::kBanned);
  EXPECT_EQ(under_test_.engine.Check(kMallory).message, "Too many attempts");
}

TEST_F(Ban, OfTwoRulesIsTheLongerOne) {
  under_test_.Apply(R"(
rules:
  - { name: a, key: ip, limit: 1/min, message: from a, block: { after: 2 denials in 1min, for: 5min } }
  - { name: b, key: ip, limit: 1/min, message: from b, block: { after: 2 denials in 1min, for: 9min } }
  - { name: c, key: ip, limit: 1/min, message: from c, block: { after: 2 denials in 1min, for: 7min } }
)");
  EXPECT_EQ(GetBanned(), minutes(9));
  const Answer answer = under_test_.engine.Check(kMallory);
  EXPECT_EQ(answer.decision.rule, "b");
  EXPECT_EQ(answer.decision.retry_after, minutes(9));
  EXPECT_EQ(answer.message, "from b");
}

TEST_F(Ban, ComesOnceWhenManyAreDeniedAtTheSameTime) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 50; ++round) {
    const std::string ip = "198.51.100." + std::to_string(round);
    const Request request{.ip = ip, .path = "/login"};
    UseUp(request);
    std::atomic<int> ready{0};
    std::atomic<int> limited{1};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
          ++ready;
          while (ready < kThreads) std::this_thread::yield();
          for (int j = 0; j < 10; ++j) {
            const Decision decision = under_test_.engine.Check(request).decision;
            EXPECT_FALSE(decision.allowed);
            if (decision.reason == Reason::kLimited) ++limited;
          }
        });
      }
    }
    // Until the one whose denial was the last has begun the ban, the others are just denied. Had it
    // begun twice, it would last longer.
    EXPECT_GE(limited, 9);
    EXPECT_EQ(Check(request).retry_after, minutes(10));
  }
}

}  // namespace
}  // namespace weir
