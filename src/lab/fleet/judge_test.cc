// Stories with one thing wrong in each: the judge must find just that.
#include "lab/fleet/judge.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/sim_loop.h"

namespace weir::lab {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Two nodes, one Redis, one rule: 10/s burst 5. A user asks every 100 ms of either node in turn,
// and all is let through.
class Story {
 public:
  Story() {
    record.layout = StoreLayout::kRedis;
    record.servers = 1;
    record.nodes = 2;
    record.fleet_size = 2;
    record.timeout = milliseconds(50);
    record.rules = {"r"};
    record.tracks = {{"r", "user=ann"}};
    SetLimit("10/s burst 5");
    record.clients = {{"c", "c 1"}};
    record.node_notes.resize(2);
    for (int i = 0; i < 100; ++i) Ask(milliseconds(100) * i, i % 2);
    record.asked_until = seconds(10);
    record.ended = seconds(11);
    record.caps.looks = 10;
    record.reconnects.looks = 10;
    record.ledger = {{.at = seconds(11), .used = 0}};
    for (int node = 0; node < 2; ++node) SetCounts(node);
  }

  void SetLimit(const std::string& text, LimitSpec spec = {}) {
    record.limits = {{"r", 0, *Limit::Parse(text, spec)}};
  }
  Asked& Ask(Duration at, int node, bool allowed = true) {
    Asked& asked = record.asked.emplace_back();
    asked.node = node;
    asked.at = at;
    asked.answered = at + milliseconds(1);
    asked.answers = 1;
    asked.allowed = allowed;
    asked.reason = allowed ? Reason::kOk : Reason::kLimited;
    asked.source = Source::kStore;
    asked.fate = Fate::kDecided;
    asked.decided_at = sim::SimLoop::Beginning() + at;
    asked.uses = {{.allowed = allowed, .reason = asked.reason, .source = Source::kStore}};
    return asked;
  }
  void SetCounts(int node) {
    OutcomeCounts& counts = record.node_notes[static_cast<std::size_t>(node)].counted;
    counts.clear();
    for (const Asked& asked : record.asked) {
      if (asked.node == node && asked.answers > 0) {
        ++counts[{"r", asked.allowed ? "allowed" : "denied"}];
      }
    }
  }
  void Count() {
    for (int node = 0; node < 2; ++node) SetCounts(node);
  }
  // The node decided in the store's place.
  static void Fail(Asked& asked, Source source) {
    asked.fate = Fate::kFailed;
    asked.error = "connection refused";
    asked.source = source;
    asked.uses[0].source = source;
  }
  void Fault(FaultNote fault) {
    record.healed = std::max(record.healed, fault.ends);
    record.faults.push_back(std::move(fault));
  }

  Record record;
};

// What was broken, and an example of it.
void ExpectBroken(const Story& story, int number, const std::string& says) {
  Verdict verdict = Judge(story.record);
  for (int i = 1; i <= static_cast<int>(kInvariants); ++i) {
    const Finding& finding = verdict.Of(i);
    EXPECT_EQ(finding.broken > 0, i == number)
        << finding.name << testing::PrintToString(finding.examples);
  }
  ASSERT_FALSE(verdict.Of(number).examples.empty());
  EXPECT_THAT(verdict.Of(number).examples[0], HasSubstr(says));
}

void ExpectClean(const Story& story) {
  const Verdict verdict = Judge(story.record);
  for (const Finding& finding : verdict.findings) {
    EXPECT_EQ(finding.broken, 0U) << finding.name << testing::PrintToString(finding.examples);
  }
}

TEST(Judge, FindsNothingWhereNothingIsWrong) {
  const Story story;
  Verdict verdict = Judge(story.record);
  EXPECT_TRUE(verdict.is_clean());
  for (const Finding& finding : verdict.findings) EXPECT_GT(finding.checked, 0U) << finding.name;
}

TEST(Judge, FindsMoreThanTheLimitInAnyInterval) {
  Story story;
  for (int i = 0; i < 5; ++i) story.Ask(seconds(5) + milliseconds(i), 0);
  story.Count();
  ExpectBroken(story, 1, "of r, user=ann");
}

TEST(Judge, AllowsOneBurstForEveryTimeAServerForgot) {
  Story story;
  for (int i = 0; i < 5; ++i) story.Ask(seconds(5) + milliseconds(i), 0);
  story.Count();
  story.Fault({.name = "flush", .begins = seconds(4), .ends = milliseconds(5200), .forgets = true});
  ExpectClean(story);
  // But not two.
  for (int i = 0; i < 6; ++i) story.Ask(seconds(5) + milliseconds(10 + i), 0);
  story.Count();
  ExpectBroken(story, 1, "of r, user=ann");
}

TEST(Judge, FindsMoreThanANodesShare) {
  Story story;
  story.Fault({.name = "pause", .begins = seconds(2), .ends = seconds(4)});
  for (Asked& asked : story.record.asked) {
    if (asked.at > seconds(2) && asked.at < seconds(4)) Story::Fail(asked, Source::kFallback);
  }
  ExpectClean(story);
  // Half the burst, rounded down, is 2, and half the rate one in 200 ms.
  Story::Fail(story.Ask(milliseconds(3000), 0), Source::kFallback);
  Story::Fail(story.Ask(milliseconds(3001), 0), Source::kFallback);
  story.Count();
  ExpectBroken(story, 1, "by its share: node 1");
}

TEST(Judge, HoldsANodeToTheShareThatItCounted) {
  Story story;
  story.record.fleet_size = 0;
  for (NodeNote& node : story.record.node_notes) node.fleet_size_at_end = 2;
  story.Fault({.name = "pause", .begins = seconds(2), .ends = seconds(4)});
  const auto fail = [](Asked& asked) {
    Story::Fail(asked, Source::kFallback);
    asked.fleet_size = 2;
  };
  for (Asked& asked : story.record.asked) {
    if (asked.at > seconds(2) && asked.at < seconds(4)) fail(asked);
  }
  ExpectClean(story);
  fail(story.Ask(milliseconds(3000), 0));
  fail(story.Ask(milliseconds(3001), 0));
  story.Count();
  ExpectBroken(story, 1, "by its share: node 1");
}

TEST(Judge, LeavesAsideWhatIsLetThroughWhileNodesHaveDifferentLimits) {
  Story story;
  story.record.limits.push_back({"r", 1, *Limit::Parse("10/s burst 6")});
  for (Asked& asked : story.record.asked) {
    if (asked.at > seconds(5)) asked.uses[0].limit = 1;
  }
  story.Fault({.name = "policy reload",
               .begins = seconds(5),
               .ends = milliseconds(5100),
               .reloads = true,
               .is_harmless = true});
  story.record.disagreements = {{seconds(5), milliseconds(5150)}};
  story.record.ledger.clear();
  story.Ask(milliseconds(5020), 1).uses[0].limit = 1;
  for (int i = 0; i < 40; ++i) story.Ask(milliseconds(5050), 0);
  story.Count();
  ExpectClean(story);
  // But not what comes before or after.
  for (int i = 0; i < 6; ++i) story.Ask(milliseconds(4000), 0);
  story.Count();
  ExpectBroken(story, 1, "of r, user=ann");
}

TEST(Judge, LeavesOpenUnbounded) {
  Story story;
  story.Fault({.name = "pause", .begins = seconds(2), .ends = seconds(4)});
  for (int i = 0; i < 50; ++i) {
    Asked& asked = story.Ask(seconds(3), 0);
    asked.uses[0].mode = FailureMode::kOpen;
    Story::Fail(asked, Source::kOpen);
  }
  story.Count();
  ExpectClean(story);
}

TEST(Judge, FindsADenialThatNobodyNeeded) {
  Story story;
  story.Ask(milliseconds(9500), 0, false);
  story.Count();
  ExpectBroken(story, 2, "denied without need");
}

TEST(Judge, AcceptsADenialThatMayHaveBeenNeeded) {
  Story story;
  for (int i = 0; i < 5; ++i) {
    Asked& asked = story.Ask(milliseconds(9450 + i), 1, false);
    Story::Fail(asked, Source::kClosed);
    asked.fate = Fate::kUnknown;
    asked.reason = asked.uses[0].reason = Reason::kStoreFailure;
    asked.uses[0].mode = FailureMode::kClosed;
  }
  story.Ask(milliseconds(9500), 0, false);
  story.Fault({.name = "pause", .begins = seconds(9), .ends = milliseconds(9460)});
  story.record.ledger.clear();
  story.Count();
  ExpectClean(story);
}

TEST(Judge, FindsALockOutAfterAClockWasSetBack) {
  Story story;
  story.Fault({.name = "clock back",
               .begins = milliseconds(10500),
               .ends = milliseconds(10600),
               .server = 0,
               .moves_clock = true,
               .moves_clock_back = true,
               .is_harmless = true});
  // Until the bucket, and what may be booked ahead of it, has drained once: 2 * 0.5 s and a minute.
  story.record.ended = seconds(100);
  for (int i = 0; i < 50; ++i) story.Ask(seconds(11 + i), 0, false);
  story.Count();
  ExpectClean(story);
  for (int i = 50; i < 80; ++i) story.Ask(seconds(11 + i), 0, false);
  story.Count();
  ExpectBroken(story, 2, "denied without need");
}

TEST(Judge, GivesNothingForAClockThatWasSetBack) {
  Story story;
  story.Fault({.name = "clock back",
               .begins = milliseconds(4950),
               .ends = milliseconds(7050),
               .server = 0,
               .moves_clock = true,
               .moves_clock_back = true,
               .is_harmless = true});
  story.record.ledger.clear();
  // When it goes ahead again there is a burst.
  for (int i = 0; i < 4; ++i) story.Ask(milliseconds(7040 + i), 0);
  for (int i = 0; i < 4; ++i) story.Ask(milliseconds(7060 + i), 0);
  story.Count();
  ExpectClean(story);
  for (int i = 0; i < 4; ++i) story.Ask(milliseconds(4930 + i), 0);
  for (int i = 0; i < 4; ++i) story.Ask(milliseconds(4960 + i), 0);
  story.Count();
  ExpectBroken(story, 1, "of r, user=ann");
}

TEST(Judge, FindsAWrongReason) {
  Story story;
  story.record.asked[7].reason = Reason::kLimited;
  ExpectBroken(story, 2, "allowed: limited");
}

TEST(Judge, FindsWhatIsLetThroughThoughClosed) {
  Story story;
  story.Fault({.name = "pause", .begins = seconds(2), .ends = seconds(4)});
  Asked& asked = story.record.asked[25];
  asked.uses[0].mode = FailureMode::kClosed;
  Story::Fail(asked, Source::kClosed);
  ExpectBroken(story, 2, "though a rule is closed");
}

TEST(Judge, FindsTwoPoliciesInOneDecision) {
  Story story;
  story.record.asked[3].mixed_up = "2 rules decided where 1 match";
  ExpectBroken(story, 3, "2 rules decided");
}

TEST(Judge, FindsWhoWasToldTwiceOrNever) {
  Story twice;
  twice.record.asked[3].answers = 2;
  ExpectBroken(twice, 4, "answered 2 times");
  Story never;
  never.record.asked[3].answers = 0;
  never.Count();
  ExpectBroken(never, 4, "answered 0 times");
  // Unless its node ended.
  never.record.asked[3].is_lost = true;
  ExpectClean(never);
}

TEST(Judge, FindsWhatIsBeyondItsCap) {
  Story story;
  story.record.caps.excesses = {"node 1: 3000 calls under way"};
  ExpectBroken(story, 5, "3000 calls");
}

TEST(Judge, FindsAnswersThatComeTooLate) {
  Story late;
  late.record.asked[3].answered = late.record.asked[3].at + milliseconds(53);
  ExpectBroken(late, 6, "took 53000000 ns");
  // A node that stood still is no store that was slow.
  late.Fault({.name = "node pause",
              .begins = late.record.asked[3].at,
              .ends = late.record.asked[3].answered,
              .node = 1,
              .stops = true});
  ExpectClean(late);
  Story with_open_breaker;
  with_open_breaker.record.asked[3].breaker_was_open = true;
  with_open_breaker.record.asked[3].answered += milliseconds(1);
  ExpectBroken(with_open_breaker, 6, "with the breaker open");
}

TEST(Judge, FindsAStoreThatIsNotAskedAgain) {
  Story story;
  story.Fault({.name = "pause", .begins = seconds(2), .ends = seconds(4)});
  Story::Fail(story.record.asked[65], Source::kFallback);
  ExpectBroken(story, 7, "not decided by the store");
  // What nobody should notice does not hide it, nor does what comes later.
  story.Fault({.name = "clock ahead",
               .begins = seconds(6),
               .ends = milliseconds(9900),
               .server = 0,
               .moves_clock = true,
               .is_harmless = true});
  story.record.ledger.clear();
  ExpectBroken(story, 7, "not decided by the store");
  story.Fault({.name = "pause", .begins = seconds(8), .ends = seconds(9)});
  ExpectBroken(story, 7, "not decided by the store");
  Story degraded;
  degraded.record.node_notes[1].is_degraded_at_end = true;
  ExpectBroken(degraded, 7, "node 2 still thinks");
  Story storm;
  storm.record.reconnects.excesses = {"99 attempts to connect"};
  ExpectBroken(storm, 7, "99 attempts");
  Story alone;
  alone.record.fleet_size = 0;
  alone.record.node_notes[0].fleet_size_at_end = 1;
  alone.record.node_notes[1].fleet_size_at_end = 2;
  ExpectBroken(alone, 7, "node 1 counts 1");
}

TEST(Judge, DoesNotTakeLooksAtConnectionsForARecovery) {
  Story story;
  story.Fault({.name = "pause", .begins = seconds(2), .ends = seconds(10)});
  story.record.ledger.clear();
  story.record.ended = seconds(11);
  EXPECT_EQ(Judge(story.record).Of(7).checked, 0U);
}

TEST(Judge, FindsCountersThatDisagreeWithAnswers) {
  Story story;
  ++story.record.node_notes[0].counted[{"r", "allowed"}];
  ExpectBroken(story, 8, "node 1 counted r allowed 51 times and answered so 50 times");
}

TEST(Judge, FindsTooMuchAndTooLittleInTheStore) {
  Story story;
  story.SetLimit("1k/h", {.algorithm = Algorithm::kFixedWindow});
  story.record.ledger[0].used = 100;
  ExpectClean(story);
  story.record.ledger[0].used = 101;
  ExpectBroken(story, 8, "too much: 101 charged");
  story.record.ledger[0].used = 99;
  ExpectBroken(story, 8, "too little: 99 charged");
  // Less is no wonder where a server forgot something.
  story.Fault({.name = "flush", .begins = seconds(4), .ends = seconds(4), .forgets = true});
  ExpectClean(story);
  story.record.ledger[0].used.reset();
  ExpectBroken(story, 7, "could not be read");
}

TEST(Judge, LooksAtEveryNodeByItselfInMemory) {
  Story story;
  story.record.layout = StoreLayout::kMemory;
  story.record.asked.clear();
  // Both together are above the limit, each by itself is not.
  for (int i = 0; i < 60; ++i) {
    for (int node = 0; node < 2; ++node) {
      Asked& asked = story.Ask(milliseconds(100) * i, node);
      asked.fate = Fate::kNotAsked;
      asked.source = asked.uses[0].source = Source::kMemory;
      asked.answered = asked.at;
    }
  }
  story.record.ledger = {{.node = 0, .at = seconds(11), .used = 0}};
  story.Count();
  ExpectClean(story);
  for (int i = 0; i < 5; ++i) {
    Asked& asked = story.Ask(seconds(3), 1);
    asked.fate = Fate::kNotAsked;
    asked.source = asked.uses[0].source = Source::kMemory;
    asked.answered = asked.at;
  }
  story.Count();
  ExpectBroken(story, 1, "node 2");
}

TEST(Judge, DoesNotHoldAShadowToItsLimit) {
  Story story;
  for (int i = 0; i < 20; ++i) {
    Asked& asked = story.Ask(seconds(5), 0);
    asked.uses[0].is_shadow = true;
    asked.uses[0].allowed = false;
    asked.uses[0].reason = Reason::kLimited;
  }
  for (int node = 0; node < 2; ++node) story.SetCounts(node);
  story.record.node_notes[0].counted[{"r", "allowed"}] -= 20;
  story.record.node_notes[0].counted[{"r", "shadow_denied"}] = 20;
  Verdict verdict = Judge(story.record);
  EXPECT_EQ(verdict.Of(1).broken, 0U);
  EXPECT_EQ(verdict.Of(8).broken, 0U);
}

}  // namespace
}  // namespace weir::lab
