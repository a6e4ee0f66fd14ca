// A request as a group of charges.
#include "limiter/limiter_state.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

class QuestionTest : public testing::Test {
 protected:
  QuestionTest() {
    for (const char* name : {"one", "two", "three"}) {
      layers_.all.push_back({.name = name,
                             .limit = LimitOf("10/10s"),
                             .shadow = false,
                             .scope = under_test_.store.Hash(name)});
    }
  }
  struct Asked : ChargedRequest {
    Asked(QuestionTest& test, const Keys& keys, std::int64_t cost, Verb verb)
        : ChargedRequest(test.under_test_.store, test.layers_, verb, cost) {
      EXPECT_TRUE(SetKeys(keys));
    }
  };
  Asked Ask(const Keys& keys, std::int64_t cost = 1, Verb verb = Verb::kCheck) {
    return {*this, keys, cost, verb};
  }
  // What each layer has left for `key`.
  std::vector<std::int64_t> Left(std::string_view key) {
    std::vector<std::int64_t> left;
    for (const ScopedLayer& layer : layers_.all) {
      Charge charge = layer.ChargeFor(under_test_.store, key);
      charge.verb = Verb::kPeek;
      left.push_back(under_test_.store.Decide(charge, Now()).remaining);
    }
    return left;
  }
  weir::Now Now() const { return under_test_.clock.Read(); }

  StoreUnderTest under_test_;
  Layers layers_;
};

TEST_F(QuestionTest, ChargesTheSameKeyInEveryLayer) {
  EXPECT_TRUE(Ask("ann", 3).Decide(Now()).decision.allowed);
  EXPECT_THAT(Left("ann"), testing::ElementsAre(7, 7, 7));
}

TEST_F(QuestionTest, ChargesEachKeyInItsLayer) {
  EXPECT_TRUE(Ask({"a", "b", "a"}, 3).Decide(Now()).decision.allowed);
  EXPECT_THAT(Left("a"), testing::ElementsAre(7, 10, 7));
  EXPECT_THAT(Left("b"), testing::ElementsAre(10, 7, 10));
}

TEST_F(QuestionTest, LeavesOutTheLayersThatAreSkipped) {
  Asked request = Ask({kSkip, "b", kSkip}, 3);
  const Group& group = request.Decide(Now());
  EXPECT_EQ(group.charges.size(), 1U);
  EXPECT_EQ(group.decision.rule, "two");
  EXPECT_THAT(Left("b"), testing::ElementsAre(10, 7, 10));
}

TEST_F(QuestionTest, TellsAnEmptyKeyFromASkippedOne) {
  Asked request = Ask({"", kSkip, std::string()});
  EXPECT_EQ(request.Decide(Now()).charges.size(), 2U);
  EXPECT_THAT(Left(""), testing::ElementsAre(9, 10, 9));
}

TEST_F(QuestionTest, RefusesKeysThatDoNotFitTheLayers) {
  ChargedRequest request(under_test_.store, layers_, Verb::kCheck, 1);
  const auto result = request.SetKeys({"a", "b"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("2 given"), HasSubstr("the 3 layers")));
}

TEST_F(QuestionTest, IsDecidedAfreshEachTime) {
  Asked request = Ask("ann", 6);
  EXPECT_TRUE(request.Decide(Now()).decision.allowed);
  EXPECT_FALSE(request.Decide(Now()).decision.allowed);
  under_test_.clock.Advance(seconds(2));
  EXPECT_TRUE(request.Decide(Now()).decision.allowed);
}

TEST_F(QuestionTest, BooksAheadAndSaysWhatItTook) {
  Ask("ann", 10).Decide(Now());
  Asked request = Ask({"ann", kSkip, "ann"}, 2);
  request.SetWait(seconds(5));
  const Group& group = request.Decide(Now());
  EXPECT_EQ(group.decision.delay, seconds(2));
  ChargedRequest back(under_test_.store, layers_, Verb::kUnbook, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(group.receipts[i].charged, 2);
    Charge& charge = back.Add(request.layer_of(i), request.charges()[i].hash);
    charge.reserved = group.receipts[i].charged;
    charge.receipt = group.receipts[i].at;
  }
  const auto reset_after = [&](const Keys& keys) {
    return Ask(keys, 1, Verb::kPeek).Decide(Now()).decision.reset_after;
  };
  EXPECT_EQ(reset_after({"ann", kSkip, kSkip}), seconds(12));
  back.Decide(Now());
  EXPECT_EQ(reset_after({"ann", kSkip, kSkip}), seconds(10));
  EXPECT_EQ(reset_after({kSkip, kSkip, "ann"}), seconds(10));
}

TEST_F(QuestionTest, CanBeAskedAgainByLayerAndIdentity) {
  Asked request = Ask({kSkip, "ann", kSkip});
  ChargedRequest again(under_test_.store, layers_, Verb::kCheck, 4);
  again.Add(request.layer_of(0), request.charges()[0].hash);
  EXPECT_EQ(again.Decide(Now()).decision.rule, "two");
  EXPECT_THAT(Left("ann"), testing::ElementsAre(10, 6, 10));
}

TEST_F(QuestionTest, BooksAheadIfAllThatMayStopItAreBuckets) {
  layers_.all[1].limit = LimitOf("10/10s", {.algorithm = Algorithm::kSlidingLog});
  layers_.all[2].limit = LimitOf("unlimited", {.algorithm = Algorithm::kConcurrency});
  EXPECT_FALSE(Ask("ann").BooksAhead());
  EXPECT_TRUE(Ask({"ann", kSkip, "ann"}).BooksAhead());
  layers_.all[1].shadow = true;
  EXPECT_TRUE(Ask("ann").BooksAhead());
}

TEST_F(QuestionTest, NextToAPlaceOnlyAQueueBooksAhead) {
  layers_.all[1].limit = LimitOf("10/10s", {.algorithm = Algorithm::kLeakyBucket, .queue = true});
  layers_.all[2].limit = LimitOf("10 concurrent");
  Asked request = Ask("ann");
  request.SetWait(seconds(5));
  EXPECT_EQ(request.charges()[0].wait, Duration(0));
  EXPECT_EQ(request.charges()[1].wait, seconds(5));
  Asked without = Ask({"ann", "ann", kSkip});
  without.SetWait(seconds(5));
  EXPECT_EQ(without.charges()[0].wait, seconds(5));
}

}  // namespace
}  // namespace weir
