// What a call sends, and answers that make no sense. What the script does with it is held to the
// oracle elsewhere.
#include "store/redis/script_call.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/redis/shared_limit_under_test.h"

namespace weir::redis {
namespace {

using resp::ReplyItem;

constexpr WallTime kNow{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
constexpr std::int64_t kMicroseconds = 1'772'323'200'000'000;

class OneCall : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(call_.Add(group_, kNow));
    ByteBuffer out;
    call_.Write(out, ScriptCall::Form::kDigest);
    sent_ = out.view();
  }
  bool Take(std::vector<ReplyItem> items) {
    const ReplyItem head{.kind = ReplyItem::Kind::kArray, .count = items.size()};
    if (!call_.Take(head)) return false;
    for (ReplyItem& item : items) {
      item.depth = 1;
      if (!call_.Take(item)) return false;
    }
    return true;
  }
  static ReplyItem Bulk(std::string_view text) {
    return {.kind = ReplyItem::Kind::kBulk, .text = text};
  }
  static ReplyItem Number(std::int64_t number) {
    return {.kind = ReplyItem::Kind::kInteger, .integer = number};
  }

  const Limit limit_ = SharedLimit("10/10s");
  const Charge charge_{.rule = "api", .key = "ann", .limit = &limit_, .cost = 2};
  std::array<Decision, 1> decisions_;
  std::array<Receipt, 1> receipts_{};
  Group group_{.charges = {&charge_, 1}, .decisions = decisions_, .receipts = receipts_};
  // Half a unit is left.
  const std::string nearly_empty_ = std::to_string((kNow - kEpoch).count() + 9'500'000'000);
  ScriptCall call_;
  std::string sent_;
};

TEST_F(OneCall, SendsTheDigestAndDeclaresEveryKey) {
  EXPECT_EQ(sent_.find("*5\r\n$7\r\nEVALSHA\r\n$40\r\n" + std::string(ScriptDigest()) +
                       "\r\n$1\r\n1\r\n$17\r\nweir1:{ann}:api:t\r\n$32\r\n"),
            0U);
}

TEST_F(OneCall, IsToldAFreshKey) {
  ASSERT_TRUE(Take({Number(kMicroseconds + 5), Number(1), {}}));
  EXPECT_FALSE(call_.WantsAnotherRound());
  EXPECT_TRUE(group_.decision.allowed);
  EXPECT_EQ(group_.decision.source, Source::kStore);
  EXPECT_EQ(group_.decision.rule, "api");
  EXPECT_EQ(group_.decision.remaining, 8);
  EXPECT_EQ(group_.decision.reset_after, std::chrono::seconds(2));
  EXPECT_EQ(group_.decided_at, kNow + std::chrono::microseconds(5));
  EXPECT_EQ(receipts_[0].charged, 2);
}

TEST_F(OneCall, IsToldAllInOneText) {
  ASSERT_TRUE(call_.Take(Bulk("1772323200 5 1 ")));
  EXPECT_TRUE(group_.decision.allowed);
  EXPECT_EQ(group_.decision.remaining, 8);
  EXPECT_EQ(group_.decided_at, kNow + std::chrono::microseconds(5));
}

TEST_F(OneCall, RefusesTextsThatMakeNoSense) {
  for (const std::string_view text :
       {"", "1", "1772323200", "1772323200 5", "1772323200 5 1", "x 5 1 ", "1772323200 x 1 ",
        "1772323200 1000000 1 ", "-1 5 1 ", "9999999999999999 5 1 ", "1772323200 5 -1 "}) {
    EXPECT_FALSE(call_.Take(Bulk(text))) << text;
  }
}

TEST_F(OneCall, IsToldADenial) {
  ASSERT_TRUE(Take({Number(kMicroseconds), Number(0), Bulk(nearly_empty_)}));
  EXPECT_FALSE(group_.decision.allowed);
  EXPECT_EQ(group_.decision.reason, Reason::kLimited);
  EXPECT_EQ(group_.decision.retry_after, std::chrono::milliseconds(1500));
}

TEST_F(OneCall, TakesTheWordOfTheScript) {
  ASSERT_TRUE(Take({Number(kMicroseconds), Number(1), Bulk(nearly_empty_)}));
  EXPECT_TRUE(group_.decision.allowed);
}

TEST_F(OneCall, TakesTheWordOfTheScriptForADenialToo) {
  ASSERT_TRUE(Take({Number(kMicroseconds), Number(0), {}}));
  EXPECT_FALSE(group_.decision.allowed);
  EXPECT_EQ(group_.decision.reason, Reason::kLimited);
}

TEST_F(OneCall, CountsWhatWasNotOurs) {
  ASSERT_TRUE(Take({Number(kMicroseconds), Number(1), Bulk("abc"), Number(1), Number(1)}));
  EXPECT_EQ(call_.corrupt(), 1U);
  EXPECT_EQ(group_.decision.remaining, 8);
}

TEST_F(OneCall, RefusesAnswersThatMakeNoSense) {
  EXPECT_FALSE(call_.Take(Number(1)));
  EXPECT_FALSE(Take({}));
  EXPECT_FALSE(Take({Number(kMicroseconds), Number(1)}));
  EXPECT_FALSE(Take({Bulk("yesterday"), Number(1), {}}));
  EXPECT_FALSE(Take({Number(-5), Number(1), {}}));
  EXPECT_FALSE(Take({Number(INT64_MAX), Number(1), {}}));
  EXPECT_FALSE(Take({Number(kMicroseconds), Bulk("1"), {}}));
  EXPECT_FALSE(Take({Number(kMicroseconds), Number(1), Number(7)}));
  EXPECT_FALSE(Take({Number(kMicroseconds), Number(1), {}, Number(1), Number(9)}));
  EXPECT_FALSE(Take(std::vector<ReplyItem>(100)));
  call_.Fail({.code = ErrorCode::kInternal, .message = "no sense"});
  EXPECT_TRUE(group_.error);
}

TEST(ScriptCalls, DecideAloneWhatCountsNothing) {
  const Limit free = *Limit::Parse("unlimited");
  const Limit shut = *Limit::Parse("deny");
  const std::array<Charge, 2> charges{Charge{.rule = "free", .key = "ann", .limit = &free},
                                      Charge{.rule = "shut", .key = "ann", .limit = &shut}};
  std::array<Decision, 2> decisions;
  Group both{.charges = charges, .decisions = decisions};
  ASSERT_TRUE(ScriptCall::DecideAlone(both));
  EXPECT_EQ(both.decision.reason, Reason::kDenyList);
  Group one{.charges = {charges.data(), 1}, .decisions = decisions};
  ASSERT_TRUE(ScriptCall::DecideAlone(one));
  EXPECT_TRUE(one.decision.allowed);
  one.action = Action::kReserve;
  EXPECT_FALSE(ScriptCall::DecideAlone(one));  // It will be committed.
  Group settled{.action = Action::kCommit, .reservation = ReservationId{1}};
  ASSERT_TRUE(ScriptCall::DecideAlone(settled));
  EXPECT_EQ(settled.error->code, ErrorCode::kNotFound);
}

TEST(ScriptCalls, HaveRoomForALimitedNumberOfCharges) {
  const Limit limit = SharedLimit("10/10s");
  std::vector<Charge> charges(kMaxGroupCharges, {.rule = "api", .key = "ann", .limit = &limit});
  std::vector<Decision> decisions(charges.size());
  std::vector<Group> groups(5, {.charges = charges, .decisions = decisions});
  ScriptCall call;
  EXPECT_TRUE(call.empty());
  EXPECT_TRUE(call.Add(groups[0], kNow));
  EXPECT_FALSE(call.Add(groups[1], kNow));
  call.Clear();
  EXPECT_TRUE(call.Add(groups[1], kNow));
  EXPECT_EQ(call.groups(), 1U);
}

}  // namespace
}  // namespace weir::redis
