#include "store/redis/key_text.h"

#include <gtest/gtest.h>

#include "store/redis/reservation_id.h"

namespace weir::redis {
namespace {

std::string KeyOf(std::string_view limit, LimitSpec defaults = {}, Aspect aspect = Aspect::kRule,
                  std::string_view rule = "api") {
  const Limit parsed = *Limit::Parse(limit, std::move(defaults));
  std::string text;
  AppendKey(text, {.rule = rule, .aspect = aspect, .key = "user=7", .limit = &parsed});
  return text;
}

TEST(KeyText, NamesSubjectRuleAndAlgorithm) {
  EXPECT_EQ(KeyOf("5/s"), "weir1:{user=7}:api:t");
  EXPECT_EQ(KeyOf("5/s", {.algorithm = Algorithm::kLeakyBucket}), "weir1:{user=7}:api:l");
  EXPECT_EQ(KeyOf("5/s", {.algorithm = Algorithm::kLeakyBucket, .queue = true}),
            "weir1:{user=7}:api:q");
  EXPECT_EQ(KeyOf("5/s", {.algorithm = Algorithm::kFixedWindow}), "weir1:{user=7}:api:f");
  EXPECT_EQ(KeyOf("5/s", {.algorithm = Algorithm::kSlidingWindow}), "weir1:{user=7}:api:s");
  EXPECT_EQ(KeyOf("5/s", {.algorithm = Algorithm::kSlidingWindow, .strict = true}),
            "weir1:{user=7}:api:x");
  EXPECT_EQ(KeyOf("5/s", {.algorithm = Algorithm::kSlidingLog}), "weir1:{user=7}:api:g");
  EXPECT_EQ(KeyOf("5 concurrent"), "weir1:{user=7}:api:c");
}

TEST(KeyText, KeepsWhatElseARuleCountsApart) {
  EXPECT_EQ(KeyOf("5/s", {}, Aspect::kBan), "weir1:{user=7}:api:ban:t");
  EXPECT_EQ(KeyOf("5/s", {}, Aspect::kDenials), "weir1:{user=7}:api:denials:t");
  EXPECT_EQ(KeyOf("5/s", {}, Aspect::kBanSteps), "weir1:{user=7}:api:steps:t");
}

TEST(KeyText, OfALimitThatCameWithTheRequestTellsWindowsApart) {
  EXPECT_EQ(KeyOf("5/s", {}, Aspect::kRule, ""), "weir1:{user=7}::t");
  const LimitSpec fixed{.algorithm = Algorithm::kFixedWindow};
  const std::string second = KeyOf("5/s", fixed, Aspect::kRule, "");
  EXPECT_EQ(second, KeyOf("9/s", fixed, Aspect::kRule, ""));
  EXPECT_NE(second, KeyOf("5/min", fixed, Aspect::kRule, ""));
}

TEST(ReservationIds, SayWhereTheyLive) {
  for (const std::uint16_t slot : {std::uint16_t{0}, std::uint16_t{77}, std::uint16_t{16383}}) {
    const ReservationId id = DrawReservationId(slot);
    EXPECT_NE(id, DrawReservationId(slot));
    EXPECT_TRUE(IsSharedReservation(id));
    EXPECT_EQ(SlotOfReservation(id), slot);
    const ReservationId other = ReservationInSlot(id, 4711);
    EXPECT_EQ(SlotOfReservation(other), 4711);
    EXPECT_EQ(ReservationInSlot(other, slot), id);
    std::string key;
    AppendRecordKey(key, id);
    EXPECT_EQ(SlotOfKey(key), slot);
  }
}

}  // namespace
}  // namespace weir::redis
