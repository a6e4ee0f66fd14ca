// An engine that goes on with another's snapshot, under the same policy or another.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "store/memory/snapshot_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

Bytes SavedBy(EngineUnderTest& before) {
  Bytes bytes;
  EXPECT_TRUE(before.engine.Save(SinkInto(bytes)));
  return bytes;
}

// An engine in another process, `elapsed` after the first one was saved.
class EngineGoingOn {
 public:
  EngineGoingOn(EngineUnderTest& before, std::string_view yaml, Duration elapsed = Duration(0))
      : bytes(SavedBy(before)), clock(before.clock.Read().wall + elapsed) {
    EngineOptions options{.clock = &clock};
    options.on_notice = [this](std::string_view text) { notices.emplace_back(text); };
    loaded = Engine::Load(PolicyOf(yaml), SourceOf(bytes, 1'000), options);
    EXPECT_TRUE(loaded) << loaded.error().message;
  }

  Decision Check(const Request& request, std::int64_t cost = 1) {
    return loaded->engine.Check(request, {.cost = cost}).decision;
  }
  std::int64_t Remaining(const Request& request) {
    return loaded->engine.Peek(request).decision.remaining;
  }

  Bytes bytes;
  ManualClock clock;
  std::vector<std::string> notices;
  Result<LoadedEngine> loaded = std::unexpected(Error{});
};

std::string RuleForKnownUsers(std::string_view limit, std::string_view more = "") {
  return "rules:\n  - { name: per-user, key: user, unidentified: skip, limit: " +
         std::string(limit) + std::string(more) + " }\n";
}

TEST(EngineSnapshot, KeepsAnExhaustedKeyExhausted) {
  const std::string policy = RuleForKnownUsers("3/min");
  EngineUnderTest before(policy);
  EXPECT_EQ(before.Exhaust({.user = "ann"}), 3);
  EngineGoingOn after(before, policy, seconds(5));
  EXPECT_EQ(after.loaded->report.keys, 1);
  EXPECT_EQ(after.loaded->report.age, Duration(seconds(5)));
  const Decision told = after.Check({.user = "ann"});
  EXPECT_FALSE(told.allowed);
  EXPECT_EQ(told.retry_after, Duration(seconds(15)));
  after.clock.Advance(seconds(15));
  EXPECT_TRUE(after.Check({.user = "ann"}).allowed);
  EXPECT_TRUE(after.Check({.user = "bob"}).allowed);
}

TEST(EngineSnapshot, HandsOutNothingWhenTheWallClockWasSetBack) {
  const std::string policy = RuleForKnownUsers("3/min");
  EngineUnderTest before(policy);
  before.Exhaust({.user = "ann"});
  EngineGoingOn after(before, policy, -hours(24 * 365 * 30));
  EXPECT_LT(after.loaded->report.age, Duration(0));
  const Decision told = after.Check({.user = "ann"});
  EXPECT_FALSE(told.allowed);
  EXPECT_EQ(told.retry_after, Duration(seconds(20)));  // And locks nobody out for longer.
}

TEST(EngineSnapshot, KnowsNothingAnyMoreOfWhatIsLongOver) {
  const std::string policy = RuleForKnownUsers("3/min");
  EngineUnderTest before(policy);
  before.Exhaust({.user = "ann"});
  EngineGoingOn after(before, policy, hours(24 * 365 * 30));
  EXPECT_EQ(after.loaded->report.keys, 0);
  EXPECT_EQ(after.Remaining({.user = "ann"}), 3);
}

// --- Another policy ---

TEST(EngineSnapshot, GoesOnUnderAnotherLimitAsALiveChangeDoes) {
  for (const std::string_view algorithm :
       {"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"}) {
    const std::string more = ", algorithm: " + std::string(algorithm);
    EngineUnderTest before(RuleForKnownUsers("10/h", more));
    EXPECT_TRUE(before.Check({.user = "ann"}, 6).allowed);
    EngineGoingOn after(before, RuleForKnownUsers("5/h", more));
    before.Apply(RuleForKnownUsers("5/h", more));
    const Decision expected = before.Peek({.user = "ann"});
    EXPECT_EQ(expected.remaining, 2) << algorithm;
    EXPECT_EQ(after.Remaining({.user = "ann"}), expected.remaining) << algorithm;
    EXPECT_THAT(after.notices, testing::IsEmpty());
  }
}

TEST(EngineSnapshot, StartsAnewUnderALimitThatCountsInAnotherWay) {
  EngineUnderTest before(RuleForKnownUsers("10/h", ", algorithm: fixed_window"));
  before.Exhaust({.user = "ann"});
  EngineGoingOn after(before, RuleForKnownUsers("10/h", ", algorithm: sliding_log"));
  EXPECT_EQ(after.Remaining({.user = "ann"}), 10);
  ASSERT_EQ(after.notices.size(), 1);
  EXPECT_THAT(after.notices[0], HasSubstr("counts in another way now"));
}

TEST(EngineSnapshot, GoesOnWithWhatWasNotCarriedOverYet) {
  const std::string more = ", algorithm: sliding_log";
  EngineUnderTest before(RuleForKnownUsers("10/h", more));
  before.Check({.user = "ann"}, 5);
  before.Apply(RuleForKnownUsers("20/h", more));
  before.Apply(RuleForKnownUsers("40/h", more));
  EngineGoingOn same(before, RuleForKnownUsers("40/h", more), minutes(1));
  EXPECT_EQ(same.Remaining({.user = "ann"}), 20);
  EngineGoingOn other(before, RuleForKnownUsers("80/h", more), minutes(1));
  EXPECT_EQ(other.Remaining({.user = "ann"}), 40);
  other.clock.Advance(minutes(58));
  EXPECT_EQ(other.Remaining({.user = "ann"}), 40);
  other.clock.Advance(minutes(1));
  EXPECT_EQ(other.Remaining({.user = "ann"}), 80);
}

TEST(EngineSnapshot, KeepsTiersApart) {
  const auto policy = [](std::string_view free, std::string_view pro) {
    return "identity: { tier: { header: x-tier, default: free } }\n"
           "tiers:\n  free: { requests: " +
           std::string(free) + " }\n  pro: { requests: " + std::string(pro) +
           " }\n"
           "rules:\n  - { name: per-user, key: user, unidentified: skip, limit: { tier: requests "
           "}, algorithm: fixed_window }\n";
  };
  EngineUnderTest before(policy("10/h", "100/h"));
  before.Check({.user = "ann", .tier = "free"}, 5);
  before.Check({.user = "bob", .tier = "pro"}, 50);
  EngineGoingOn after(before, policy("20/h", "1000/h"));
  EXPECT_EQ(after.Remaining({.user = "ann", .tier = "free"}), 10);
  EXPECT_EQ(after.Remaining({.user = "bob", .tier = "pro"}), 500);
}

TEST(EngineSnapshot, KeepsOverridesApart) {
  const std::string more = ", algorithm: fixed_window, overrides: { ann: %/h }";
  const auto with = [&](const std::string& limit) {
    std::string text = more;
    return text.replace(text.find('%'), 1, limit);
  };
  EngineUnderTest before(RuleForKnownUsers("10/h", with("100")));
  before.Check({.user = "ann"}, 50);
  before.Check({.user = "bob"}, 5);
  EngineGoingOn after(before, RuleForKnownUsers("20/h", with("1000")));
  EXPECT_EQ(after.Remaining({.user = "ann"}), 500);
  EXPECT_EQ(after.Remaining({.user = "bob"}), 10);
}

TEST(EngineSnapshot, RemembersRulesThatAreSwitchedOffOrGone) {
  const std::string other = "  - { name: other, key: user, limit: 5/h }\n";
  EngineUnderTest before(RuleForKnownUsers("10/h") + other);
  before.Check({.user = "ann"}, 4);
  before.Apply(RuleForKnownUsers("20/h") + other);
  before.Peek({.user = "ann"});  // From now on it is counted under that.
  before.Apply(RuleForKnownUsers("20/h", ", mode: off") + other);
  before.Apply("rules:\n" + other);
  EngineGoingOn without(before, "rules:\n" + other);
  Bytes again;
  ASSERT_TRUE(without.loaded->engine.Save(SinkInto(again)));
  ManualClock clock(without.clock.Read().wall);
  auto after =
      Engine::Load(PolicyOf(RuleForKnownUsers("20/h")), SourceOf(again), {.clock = &clock});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->engine.Peek({.user = "ann"}).decision.remaining, 12);
}

TEST(EngineSnapshot, KeepsBansAndHowOftenTheyHappened) {
  const std::string policy = RuleForKnownUsers(
      "1/s", ", block: { after: 2 denials in 1h, for: 1min, growing: 60x up to 1h }");
  EngineUnderTest before(policy);
  for (int i = 0; i < 3; ++i) before.Check({.user = "ann"});
  EXPECT_EQ(before.Check({.user = "ann"}).reason, Reason::kBanned);
  EngineGoingOn after(before, policy, seconds(30));
  const Decision told = after.Check({.user = "ann"});
  EXPECT_EQ(told.reason, Reason::kBanned);
  EXPECT_EQ(told.retry_after, Duration(seconds(30)));
  after.clock.Advance(seconds(30));
  for (int i = 0; i < 3; ++i) after.Check({.user = "ann"});
  EXPECT_GT(after.Check({.user = "ann"}).retry_after, Duration(minutes(59)));
}

TEST(EngineSnapshot, SettlesUnderALimitThatHasChanged) {
  const std::string more = ", algorithm: fixed_window";
  EngineUnderTest before(RuleForKnownUsers("10/h", more));
  const Answer reserved = before.engine.Reserve({.user = "ann"}, {.cost = 8}, hours(1));
  EngineGoingOn after(before, RuleForKnownUsers("20/h", more));
  EXPECT_EQ(after.loaded->report.reservations, 1);
  EXPECT_EQ(after.Remaining({.user = "ann"}), 4);
  const auto cancelled = after.loaded->engine.Cancel(reserved.decision.reservation);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->remaining, 20);
  EXPECT_EQ(cancelled->rule, "per-user");
}

TEST(EngineSnapshot, IsTheSameWhetherLoadedOnceOrTwice) {
  const std::string policy = RuleForKnownUsers("10/h", ", algorithm: sliding_window");
  EngineUnderTest before(policy);
  before.Check({.user = "ann"}, 7);
  EngineGoingOn once(before, policy, minutes(10));
  Bytes again;
  ASSERT_TRUE(once.loaded->engine.Save(SinkInto(again)));
  ManualClock clock(once.clock.Read().wall + minutes(10));
  auto twice = Engine::Load(PolicyOf(policy), SourceOf(again), {.clock = &clock});
  ASSERT_TRUE(twice);
  before.clock.Advance(minutes(20));
  const Decision expected = before.Peek({.user = "ann"});
  const Decision told = twice->engine.Peek({.user = "ann"}).decision;
  EXPECT_EQ(told.remaining, expected.remaining);
  EXPECT_EQ(told.reset_after, expected.reset_after);
}

// --- Bytes that are not right ---

class BrokenSnapshot : public testing::Test {
 protected:
  BrokenSnapshot() {
    before_.Exhaust({.user = "ann"});
    before_.engine.Reserve({.user = "bob"});
    bytes_ = SavedBy(before_);
  }
  Result<LoadedEngine> Load(std::span<const std::byte> bytes) {
    return Engine::Load(PolicyOf(policy_), SourceOf(bytes), {.clock = &before_.clock});
  }

  const std::string policy_ = RuleForKnownUsers("3/h", ", algorithm: sliding_log");
  EngineUnderTest before_{policy_};
  Bytes bytes_;
};

TEST_F(BrokenSnapshot, IsRefusedWhereverItIsCutOff) {
  ASSERT_TRUE(Load(bytes_));
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    EXPECT_FALSE(Load(std::span(bytes_).first(size))) << size;
  }
}

TEST_F(BrokenSnapshot, IsRefusedIfAnyBitIsAnother) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    Bytes flipped = bytes_;
    flipped[i] ^= std::byte(1U << (i % 8));
    EXPECT_FALSE(Load(flipped)) << i;
  }
}

TEST_F(BrokenSnapshot, IsRefusedIfSomethingFollows) {
  bytes_.push_back(std::byte{0});
  const auto loaded = Load(bytes_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, "something follows its end");
}

TEST_F(BrokenSnapshot, SaysWhichVersionItIsOf) {
  bytes_[8] = std::byte{7};
  const auto loaded = Load(bytes_);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("version 7"));
}

TEST_F(BrokenSnapshot, TellsWhatTheSourceSaid) {
  const auto loaded =
      Engine::Load(PolicyOf(policy_),
                   [](std::span<std::byte>) -> Result<std::size_t> {
                     return std::unexpected(Error{ErrorCode::kInternal, "the disk is on fire"});
                   },
                   {.clock = &before_.clock});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, "the disk is on fire");
}

TEST_F(BrokenSnapshot, IsNotWrittenOnAfterTheSinkFailed) {
  int calls = 0;
  const auto saved = before_.engine.Save([&](std::span<const std::byte>) -> Result<void> {
    ++calls;
    return std::unexpected(Error{ErrorCode::kInternal, "the disk is full"});
  });
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message, "the disk is full");
  EXPECT_EQ(calls, 1);
}

TEST(EngineSnapshot, IsOfAStoreInMemoryOnly) {
  const Policy shared = PolicyOf("store: redis://127.0.0.1:1\n" + RuleForKnownUsers("3/h"));
  auto engine = Engine::Make(shared);
  ASSERT_TRUE(engine);
  Bytes bytes;
  EXPECT_FALSE(engine->Save(SinkInto(bytes)));
  EXPECT_TRUE(bytes.empty());
  EXPECT_FALSE(Engine::Load(shared, SourceOf(bytes)));
}

}  // namespace
}  // namespace weir
