#include "lab/compare/advice.h"

#include <algorithm>

#include <gmock/gmock.h>

#include <weir/policy.h>

#include "lab/compare/trial.h"

namespace weir::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Limit LimitOf(const char* text) { return Limit::Parse(text).value(); }

Advice AdviceFor(const Wishes& wishes, const char* limit = "100/min") {
  return Advise(wishes, LimitOf(limit)).value();
}

// All 32.
std::vector<Wishes> AllWishes() {
  std::vector<Wishes> all;
  for (unsigned bits = 0; bits < 32; ++bits) {
    all.push_back({.bursts = (bits & 1) != 0,
                   .strict = (bits & 2) != 0,
                   .smooth = (bits & 4) != 0,
                   .memory = (bits & 8) != 0,
                   .resets = (bits & 16) != 0});
  }
  return all;
}

std::string TextOf(const Wishes& wishes) {
  std::string text;
  for (const auto& [name, wish] :
       {std::pair("bursts", wishes.bursts), std::pair("strict", wishes.strict),
        std::pair("smooth", wishes.smooth), std::pair("memory", wishes.memory),
        std::pair("resets", wishes.resets)}) {
    if (wish) text += std::string(name) + " ";
  }
  return text;
}

bool HasConflict(const Advice& advice, const std::string& start) {
  return std::ranges::any_of(advice.conflicts,
                             [&](const std::string& text) { return text.starts_with(start); });
}

TEST(Advice, IsAPolicyThatLoadsWithoutAdviceForAllWishes) {
  for (const char* limit : {"100/min", "1/s", "2/s", "5/day", "7/week burst 3", "100/s burst 10",
                            "5k/h", "1M/day", "100k/s", "10/30s burst 9"}) {
    for (const Wishes& wishes : AllWishes()) {
      SCOPED_TRACE(std::string(limit) + ": " + TextOf(wishes));
      const Advice advice = AdviceFor(wishes, limit);
      const PolicyReport report = Policy::Parse(advice.policy);
      EXPECT_TRUE(report.policy);
      for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
      EXPECT_THAT(advice.reason, Not(IsEmpty()));
      EXPECT_THAT(advice.given_up, Not(IsEmpty()));
      EXPECT_THAT(advice.second, Not(IsEmpty()));
      // What is recommended is not its own second choice.
      const std::string plain = advice.spec.strict || advice.spec.queue
                                    ? advice.name
                                    : std::string(NameOf(advice.spec.algorithm)) + ",";
      EXPECT_FALSE(advice.second.starts_with(plain)) << advice.second;
    }
  }
}

TEST(Advice, GrantsEveryWishOrNamesItAsInConflict) {
  for (const Wishes& wishes : AllWishes()) {
    SCOPED_TRACE(TextOf(wishes));
    const Advice advice = AdviceFor(wishes);
    const LimitSpec& spec = advice.spec;
    const auto named = [&](const char* wish) {
      return std::ranges::any_of(advice.conflicts, [&](const std::string& conflict) {
        return conflict.substr(0, conflict.find(':')).find(wish) != std::string::npos;
      });
    };
    if (wishes.smooth) {
      EXPECT_TRUE(spec.queue);
    }
    if (wishes.strict) {
      const bool is_capped_bucket =
          spec.algorithm == Algorithm::kTokenBucket && spec.burst + spec.count == 100;
      EXPECT_TRUE(spec.strict || spec.algorithm == Algorithm::kSlidingLog || spec.queue ||
                  is_capped_bucket);
    }
    if (wishes.memory) {
      EXPECT_NE(spec.algorithm, Algorithm::kSlidingLog);
    }
    if (wishes.resets) {
      EXPECT_TRUE(spec.algorithm == Algorithm::kFixedWindow || named("resets"));
    }
    if (wishes.bursts && (wishes.smooth || wishes.strict)) {
      EXPECT_TRUE(named("bursts"));
    }
    if (!wishes.bursts && !wishes.smooth && !wishes.strict && wishes.resets) {
      EXPECT_TRUE(named("bursts"));
    }
    // Nothing is a conflict that was not wished for.
    for (const std::string& conflict : advice.conflicts) {
      const std::string wishes_named = conflict.substr(0, conflict.find(':'));
      if (wishes_named.find("without") != std::string::npos) continue;
      for (const auto& [name, wish] :
           {std::pair("bursts", wishes.bursts), std::pair("strict", wishes.strict),
            std::pair("smooth", wishes.smooth), std::pair("memory", wishes.memory),
            std::pair("resets", wishes.resets)}) {
        if (wishes_named.find(name) != std::string::npos) {
          EXPECT_TRUE(wish) << conflict;
        }
      }
    }
  }
}

// What is said to hold in every window does, on the engine and whatever comes.
TEST(Advice, KeepsAStrictCapOnEveryTraffic) {
  const Limit limit = LimitOf("100/s");
  for (const Wishes& wishes : AllWishes()) {
    if (!wishes.strict) continue;
    SCOPED_TRACE(TextOf(wishes));
    const Limit advised = Limit::Make(AdviceFor(wishes, "100/s").spec).value();
    for (const Shape shape :
         {Shape::kSteady, Shape::kPoisson, Shape::kBurst, Shape::kBoundary, Shape::kLateWindow}) {
      const Traffic traffic =
          MakeTraffic({.shape = shape, .count = 100, .period = limit.spec().period, .load = 2})
              .value();
      EXPECT_LE(RunTrial(advised, traffic).worst_window.cost, 100) << traffic.name;
    }
  }
}

TEST(Advice, TakesTheTokenBucketIfNothingSpeaksAgainstIt) {
  const Advice advice = AdviceFor({});
  EXPECT_EQ(advice.name, "token_bucket");
  EXPECT_THAT(advice.conflicts, IsEmpty());
  EXPECT_EQ(advice.policy, R"(rules:
  - name: per-client
    key: ip
    limit: 100/min
    algorithm: token_bucket
)");
  EXPECT_THAT(AdviceFor({}, "100/min burst 20").policy, HasSubstr("limit: 100/min burst 20\n"));
  EXPECT_THAT(AdviceFor({}, "100/min burst 20").given_up, HasSubstr("up to 120 may pass"));
}

TEST(Advice, TakesAWindowOfTheCalendarForResets) {
  EXPECT_THAT(AdviceFor({.resets = true}, "1k/day").policy,
              HasSubstr("algorithm: fixed_window\n    align: calendar\n    zone: UTC\n"));
  EXPECT_THAT(AdviceFor({.resets = true}, "100/min").policy, Not(HasSubstr("align")));
  EXPECT_THAT(AdviceFor({.resets = true}).given_up, HasSubstr("200 in no time"));
}

TEST(Advice, TakesTheLogForASmallStrictCapAndTheWindowForALargeOneOrManyKeys) {
  EXPECT_EQ(AdviceFor({.strict = true}).name, "sliding_log");
  EXPECT_EQ(AdviceFor({.strict = true}, "5k/min").name, "sliding_window strict");
  EXPECT_EQ(AdviceFor({.strict = true, .memory = true}).name, "sliding_window strict");
}

TEST(Advice, CapsABucketThatIsStrictWithoutBursts) {
  const Advice advice = AdviceFor({.bursts = false, .strict = true});
  EXPECT_THAT(advice.policy, HasSubstr("limit: 90/min burst 10\n"));
  EXPECT_THAT(advice.conflicts, IsEmpty());
}

TEST(Advice, NamesWhatCannotBeHadTogether) {
  EXPECT_TRUE(HasConflict(AdviceFor({.strict = true}), "bursts and strict: 100 may pass at once"));
  EXPECT_TRUE(HasConflict(AdviceFor({.smooth = true}), "bursts and smooth"));
  EXPECT_TRUE(HasConflict(AdviceFor({.strict = true, .resets = true}), "strict and resets"));
  EXPECT_TRUE(HasConflict(AdviceFor({.smooth = true, .resets = true}), "smooth and resets"));
  EXPECT_TRUE(HasConflict(AdviceFor({.bursts = false, .resets = true}), "resets without bursts"));
}

TEST(Advice, RefusesALimitThatItsAlgorithmCannotCount) {
  const auto advice = Advise({.resets = true}, LimitOf("5/100us"));
  ASSERT_FALSE(advice);
  EXPECT_THAT(advice.error().message, HasSubstr("period"));
}

TEST(Answers, AreYesOrNo) {
  for (const char* yes : {"y", "Y", "yes", "YES", "true"}) EXPECT_EQ(ParseAnswer(yes), true);
  for (const char* no : {"n", "No", "false"}) EXPECT_EQ(ParseAnswer(no), false);
  for (const char* neither : {"", "maybe", "yess", "1"}) {
    EXPECT_EQ(ParseAnswer(neither), std::nullopt);
  }
}

TEST(Answers, BelongToAQuestion) {
  Answers answers;
  ASSERT_TRUE(AddAnswer("strict=yes", answers));
  ASSERT_TRUE(AddAnswer("bursts=no", answers));
  ASSERT_TRUE(AddAnswer("bursts=n", answers));
  EXPECT_TRUE(WishesOf(answers).strict);
  EXPECT_FALSE(WishesOf(answers).bursts);
  EXPECT_FALSE(WishesOf(answers).resets);
  const auto message = [&](const char* text) {
    const Result<void> added = AddAnswer(text, answers);
    return added ? "" : added.error().message;
  };
  EXPECT_EQ(message("burst=yes"), "there is no question \"burst\"; did you mean bursts?");
  EXPECT_EQ(message("color=yes"),
            "there is no question \"color\"; there are bursts, strict, "
            "smooth, memory and resets");
  EXPECT_EQ(message("memory=perhaps"), "\"perhaps\" is no answer; write memory=yes or memory=no");
  EXPECT_EQ(message("memory"), "\"\" is no answer; write memory=yes or memory=no");
  EXPECT_EQ(message("bursts=yes"), "bursts is answered both ways");
}

}  // namespace
}  // namespace weir::lab
