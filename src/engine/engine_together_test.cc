#include <array>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::seconds;

// One descriptor of Envoy's.
struct Descriptor {
  explicit Descriptor(std::string_view name, std::string_view value)
      : entries{{{.name = name, .value = value}}} {}
  RequestPart Part(std::int64_t cost = 1) const {
    return {.request = {.domain = "edge", .descriptors = entries}, .cost = cost};
  }
  std::array<NamedValue, 1> entries;
};

constexpr std::string_view kDescriptorPolicy = R"(
deny: [{descriptor.user: mallory}]
allow: [{descriptor.user: root}]
rules:
  - name: by-user
    match: {descriptor.user: present}
    key: descriptor.user
    limit: 2/min
    message: slow down
  - name: by-path
    match: {descriptor.path: present}
    key: descriptor.path
    limit: 10/min
  - name: shadowed
    match: {descriptor.path: present}
    key: global
    limit: 1/min
    mode: shadow
)";

class EngineTogether : public testing::Test {
 protected:
  Answer Check(const std::vector<RequestPart>& parts) {
    each_.assign(parts.size(), {});
    return under_.engine.CheckTogether(parts, under_.clock.Read(), each_);
  }
  std::int64_t LeftOf(const Descriptor& descriptor, std::string_view rule) {
    return under_.Remaining(rule, descriptor.Part().request);
  }

  EngineUnderTest under_{kDescriptorPolicy};
  std::vector<RuleDecision> each_;
  const Descriptor ann_{"user", "ann"};
  const Descriptor bob_{"user", "bob"};
  const Descriptor orders_{"path", "/orders"};
};

TEST_F(EngineTogether, ChargesEveryPartByItself) {
  EXPECT_TRUE(Check({ann_.Part(), orders_.Part(3)}).decision.allowed);
  EXPECT_EQ(LeftOf(ann_, "by-user"), 1);
  EXPECT_EQ(LeftOf(orders_, "by-path"), 7);
  ASSERT_EQ(each_.size(), 2U);
  EXPECT_EQ(each_[0].decision.rule, "by-user");
  EXPECT_EQ(each_[0].decision.remaining, 1);
  EXPECT_EQ(each_[0].window, seconds(60));
  EXPECT_EQ(each_[1].decision.rule, "by-path");
  EXPECT_EQ(each_[1].decision.remaining, 7);
}

TEST_F(EngineTogether, TakesNothingIfOnePartIsDenied) {
  ASSERT_TRUE(Check({ann_.Part(2)}).decision.allowed);
  const Answer answer = Check({orders_.Part(), ann_.Part()});
  EXPECT_FALSE(answer.decision.allowed);
  EXPECT_EQ(answer.decision.rule, "by-user");
  EXPECT_EQ(answer.message, "slow down");
  EXPECT_TRUE(each_[0].decision.allowed);
  EXPECT_FALSE(each_[1].decision.allowed);
  EXPECT_EQ(LeftOf(orders_, "by-path"), 10);
}

TEST_F(EngineTogether, AddsUpWhatPartsChargeToOneKey) {
  EXPECT_TRUE(Check({ann_.Part(), ann_.Part()}).decision.allowed);
  EXPECT_EQ(LeftOf(ann_, "by-user"), 0);
  under_.clock.Advance(seconds(30));
  EXPECT_FALSE(Check({ann_.Part(), ann_.Part()}).decision.allowed) << "one of two is there";
  EXPECT_EQ(LeftOf(ann_, "by-user"), 1);
}

TEST_F(EngineTogether, LetsThroughWhatNoRuleCounts) {
  const Descriptor other("color", "red");
  const Answer answer = Check({other.Part(), ann_.Part()});
  EXPECT_TRUE(answer.decision.allowed);
  EXPECT_EQ(answer.decision.rule, "by-user");
  EXPECT_EQ(each_[0].decision.reason, Reason::kNoRule);
  EXPECT_TRUE(each_[0].decision.allowed);
  EXPECT_EQ(Check({other.Part()}).decision.reason, Reason::kNoRule);
}

TEST_F(EngineTogether, IsRefusedAsAWholeByAList) {
  const Descriptor mallory("user", "mallory");
  const Answer answer = Check({ann_.Part(), mallory.Part()});
  EXPECT_FALSE(answer.decision.allowed);
  EXPECT_EQ(answer.decision.reason, Reason::kDenyList);
  EXPECT_TRUE(each_[0].decision.allowed) << "as it would be";
  EXPECT_EQ(LeftOf(ann_, "by-user"), 2);
  const Descriptor root("user", "root");
  EXPECT_TRUE(Check({root.Part(), ann_.Part()}).decision.allowed);
  EXPECT_EQ(LeftOf(ann_, "by-user"), 1);
}

TEST_F(EngineTogether, CountsPartsWithLimitsOfTheirOwnApart) {
  const Limit three = *Limit::Parse("3/min");
  RequestPart part = ann_.Part(2);
  part.limit = &three;
  part.key = "ann";
  EXPECT_TRUE(Check({part, orders_.Part()}).decision.allowed);
  EXPECT_EQ(each_[0].decision.remaining, 1);
  EXPECT_EQ(each_[0].window, seconds(60));
  EXPECT_EQ(LeftOf(ann_, "by-user"), 2) << "its rule does not count it";
  EXPECT_FALSE(Check({orders_.Part(), part}).decision.allowed);
  EXPECT_EQ(LeftOf(orders_, "by-path"), 9);
  // The same key as a call that brings its limit.
  LimitRequest same{.key = "ann", .limit = &three, .verb = LimitRequest::Verb::kPeek};
  under_.engine.CheckLimits({&same, 1}, under_.clock.Read());
  EXPECT_EQ(same.decision.remaining, 1);
}

TEST_F(EngineTogether, AsksAndTakesNothingForNothing) {
  EXPECT_TRUE(Check({ann_.Part(0), orders_.Part(1)}).decision.allowed);
  EXPECT_EQ(LeftOf(ann_, "by-user"), 2);
  ASSERT_TRUE(Check({ann_.Part(2)}).decision.allowed);
  EXPECT_FALSE(Check({ann_.Part(0), orders_.Part(1)}).decision.allowed);
  EXPECT_EQ(LeftOf(orders_, "by-path"), 9);
}

TEST_F(EngineTogether, GivesBackWhatPartsTook) {
  ASSERT_TRUE(Check({ann_.Part(2), orders_.Part(5)}).decision.allowed);
  const std::vector<RequestPart> parts = {ann_.Part(1), orders_.Part(5)};
  std::vector<RuleDecision> each(2);
  EXPECT_TRUE(under_.engine.RefundTogether(parts, under_.clock.Read(), each).decision.allowed);
  EXPECT_EQ(each[0].decision.remaining, 1);
  EXPECT_EQ(each[1].decision.remaining, 10);
  EXPECT_EQ(LeftOf(ann_, "by-user"), 1);
}

TEST_F(EngineTogether, RefusesMoreChargesThanAGroupHolds) {
  std::vector<Descriptor> paths;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("/" + std::to_string(i));
  for (const std::string& name : names) paths.emplace_back("path", name);
  std::vector<RequestPart> parts;
  for (const Descriptor& path : paths) parts.push_back(path.Part());
  const Answer answer = Check(parts);
  EXPECT_FALSE(answer.decision.allowed) << "two rules each, and 64 are the most";
  EXPECT_EQ(answer.decision.reason, Reason::kOverload);
  EXPECT_EQ(LeftOf(paths[0], "by-path"), 10);
}

TEST_F(EngineTogether, CountsOutcomes) {
  Check({ann_.Part(2), orders_.Part()});
  Check({ann_.Part(1), orders_.Part()});
  std::uint64_t denied = 0;
  for (const RuleCount& count : under_.engine.RuleCounts()) {
    if (count.rule == "by-user" && count.outcome == "denied") denied = count.count;
  }
  EXPECT_EQ(denied, 1U);
}

TEST(EngineTogetherQueue, DeniesWhatAQueueWouldHold) {
  EngineUnderTest under(R"(
rules:
  - name: shaped
    match: {descriptor.user: present}
    key: descriptor.user
    limit: 1/s burst 5
    algorithm: leaky_bucket
    queue: true
)");
  const Descriptor ann("user", "ann");
  const std::vector<RequestPart> parts = {ann.Part()};
  const auto check = [&] { return under.engine.CheckTogether(parts, under.clock.Read()).decision; };
  EXPECT_TRUE(check().allowed);
  const Decision second = check();
  EXPECT_FALSE(second.allowed) << "it would have to wait, and nobody could tell it so";
  under.clock.Advance(seconds(1));
  const Decision third = check();
  EXPECT_TRUE(third.allowed);
  EXPECT_EQ(third.delay, Duration(0));
}

TEST(EngineTogetherBans, CountsDenialsOfEveryPart) {
  EngineUnderTest under(R"(
rules:
  - name: login
    match: {descriptor.user: present}
    key: descriptor.user
    limit: 1/min
    block: {after: 2 denials in 1min, for: 10min}
)");
  const Descriptor ann("user", "ann");
  const Descriptor bob("user", "bob");
  const std::vector<RequestPart> both = {ann.Part(), bob.Part()};
  const auto check = [&] { return under.engine.CheckTogether(both, under.clock.Read()).decision; };
  EXPECT_TRUE(check().allowed);
  EXPECT_EQ(check().reason, Reason::kLimited);
  EXPECT_EQ(check().reason, Reason::kBanned);
  under.clock.Advance(std::chrono::minutes(5));
  EXPECT_EQ(under.Check(ann.Part().request).reason, Reason::kBanned);
  EXPECT_EQ(under.Check(bob.Part().request).reason, Reason::kBanned);
}

}  // namespace
}  // namespace weir
