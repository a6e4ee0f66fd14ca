#include "engine/loop_engine.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "engine/shared_place_under_test.h"
#include "net/loop_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using Kind = Question::Kind;

constexpr std::string_view kFailClosedPolicy = R"(
store: redis://x
rules:
  - { name: per-user, key: user, limit: 2/min, on_store_failure: closed, message: slow down }
  - { name: total, key: global, limit: 100/min burst 7 }
)";

constexpr std::string_view kInMemory = R"(
rules:
  - { name: per-user, key: user, limit: 2/min }
)";
constexpr std::string_view kElsewhere = R"(
store: redis://y
rules:
  - { name: per-user, key: user, limit: 2/min, on_store_failure: closed }
)";

class LoopEngineTest : public testing::Test {
 protected:
  // What one question came to.
  struct Heard {
    Answer answer{};
    std::vector<RuleDecision> each{};
    std::optional<Error> error{};
  };

  void Start(std::string_view yaml = kFailClosedPolicy) {
    engine_.emplace(EngineParts::Make(PolicyOf(yaml), {.clock = &loop_.clock},
                                      std::make_unique<PlaceUnderTest>(world_),
                                      EngineParts::Threads::kNone));
    questions_ = LoopEngine::Make(*engine_, loop_);
    ASSERT_NE(questions_, nullptr);
  }
  std::shared_ptr<std::optional<Heard>> Ask(const Question& question) {
    auto heard = std::make_shared<std::optional<Heard>>();
    questions_->Ask(question, [heard](const Told& told) {
      ASSERT_FALSE(heard->has_value()) << "told twice";
      heard->emplace(told.answer, std::vector<RuleDecision>(told.each.begin(), told.each.end()),
                     told.error != nullptr ? std::optional(*told.error) : std::nullopt);
    });
    return heard;
  }
  // Asks, and lets the store answer.
  Heard Hear(const Question& question) {
    const auto heard = Ask(question);
    for (int i = 0; i < 32 && !heard->has_value(); ++i) loop_.Turn();
    return heard->value();
  }
  Decision Check(std::string_view user, std::int64_t cost = 1) {
    return Hear({.request = {.user = user}, .cost = cost}).answer.decision;
  }

  LoopUnderTest loop_;
  SharedWorld world_{loop_.clock.Read()};
  std::optional<Engine> engine_;
  std::unique_ptr<LoopEngine> questions_;
};

TEST_F(LoopEngineTest, AnswersAtOnceForAStoreInMemory) {
  engine_.emplace(*Engine::Make(PolicyOf(kInMemory), {.clock = &loop_.clock}));
  questions_ = LoopEngine::Make(*engine_, loop_);
  EXPECT_FALSE(questions_->is_shared());
  const auto heard = Ask({.request = {.user = "ann"}});
  ASSERT_TRUE(heard->has_value());
  EXPECT_EQ((*heard)->answer.decision.remaining, 1);
  EXPECT_EQ((*heard)->answer.decision.source, Source::kMemory);
  EXPECT_EQ(questions_->pending(), 0U);
}

TEST_F(LoopEngineTest, AnswersWhenTheStoreDoes) {
  Start();
  const auto heard = Ask({.request = {.user = "ann"}});
  EXPECT_FALSE(heard->has_value());
  EXPECT_EQ(questions_->pending(), 1U);
  loop_.Turn();
  ASSERT_TRUE(heard->has_value());
  EXPECT_EQ(questions_->pending(), 0U);
  EXPECT_TRUE((*heard)->answer.decision.allowed);
  EXPECT_EQ((*heard)->answer.decision.rule, "per-user");
  EXPECT_EQ((*heard)->answer.decision.source, Source::kStore);
  ASSERT_EQ((*heard)->each.size(), 2U);
  EXPECT_EQ((*heard)->each[1].decision.remaining, 6);
}

TEST_F(LoopEngineTest, NeedsNothingOfTheRequestOnceItIsAsked) {
  Start();
  std::string user = "a long name that is not kept in place";
  const auto heard = Ask({.request = {.user = user}});
  user.assign(user.size(), 'x');
  loop_.Turn();
  EXPECT_TRUE((*heard)->answer.decision.allowed);
  EXPECT_EQ(Check("a long name that is not kept in place").remaining, 0);
  Check("a long name that is not kept in place");
  ASSERT_EQ(engine_->TopDenied(1).size(), 1U);
  EXPECT_EQ(engine_->TopDenied(1)[0].key,
            "user=a%20long%20name%20that%20is%20not%20kept%20in%20place");
}

TEST_F(LoopEngineTest, SaysInWordsWhomChargesCountAndHowTheyFail) {
  Start();
  Check("ann&co");
  const auto seen = world_.TakeSeen();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].rule, "per-user");
  EXPECT_EQ(seen[0].key, "user=ann%26co");
  EXPECT_EQ(seen[0].on_failure, FailureMode::kClosed);
  EXPECT_EQ(seen[1].key, "global");
  EXPECT_EQ(seen[1].on_failure, FailureMode::kStatic);
  for (const auto& charge : seen) EXPECT_EQ(charge.interval % 16, 0) << charge.rule;
}

TEST_F(LoopEngineTest, SendsWhatOneTurnAskedTogether) {
  Start();
  const auto first = Ask({.request = {.user = "ann"}});
  const auto second = Ask({.request = {.user = "bob"}});
  EXPECT_EQ(questions_->pending(), 2U);
  loop_.Turn();
  EXPECT_TRUE((*first)->answer.decision.allowed);
  EXPECT_TRUE((*second)->answer.decision.allowed);
  EXPECT_EQ(world_.turns, 1);
}

TEST_F(LoopEngineTest, AnswersAtOnceWhatCountsNothing) {
  Start(
      "store: redis://x\nallow: { user: boss }\nrules: [{ name: x, key: ip, match: { user: ann }, "
      "limit: 5/s }]");
  EXPECT_EQ((*Ask({.request = {.user = "boss"}}))->answer.decision.reason, Reason::kAllowList);
  EXPECT_EQ((*Ask({.request = {.user = "eve"}}))->answer.decision.reason, Reason::kNoRule);
  EXPECT_EQ(engine_->RuleCounts().size(), 2U);
}

TEST_F(LoopEngineTest, DeniesWithTheMessageOfItsRuleAndCountsIt) {
  Start();
  Check("ann", 2);
  const Heard heard = Hear({.request = {.user = "ann"}});
  EXPECT_FALSE(heard.answer.decision.allowed);
  EXPECT_EQ(heard.answer.decision.retry_after, seconds(30));
  EXPECT_EQ(heard.answer.message, "slow down");
  EXPECT_EQ(engine_->TopDenied(5).at(0).key, "user=ann");
  bool denied = false;
  for (const RuleCount& count : engine_->RuleCounts()) {
    denied |= count.rule == "per-user" && count.outcome == "denied" && count.count == 1;
  }
  EXPECT_TRUE(denied);
}

TEST_F(LoopEngineTest, HasAllVerbs) {
  Start();
  Check("ann");
  EXPECT_EQ(Hear({.kind = Kind::kPeek, .request = {.user = "ann"}}).answer.decision.remaining, 1);
  Hear({.kind = Kind::kRefund, .request = {.user = "ann"}});
  EXPECT_EQ(Check("ann").remaining, 1);
  Hear({.kind = Kind::kPenalize, .request = {.user = "ann"}, .cost = 3});
  EXPECT_FALSE(Check("ann").allowed);
  Hear({.kind = Kind::kReset, .request = {.user = "ann"}});
  EXPECT_EQ(Check("ann").remaining, 1);
}

TEST_F(LoopEngineTest, SettlesReservations) {
  Start();
  const Heard reserved = Hear({.kind = Kind::kReserve, .request = {.user = "ann"}, .cost = 2});
  ASSERT_NE(reserved.answer.decision.reservation, ReservationId::kNone);
  EXPECT_FALSE(Check("ann").allowed);
  const Question commit{
      .kind = Kind::kCommit, .cost = 1, .reservation = reserved.answer.decision.reservation};
  EXPECT_FALSE(Hear(commit).error.has_value());
  EXPECT_TRUE(Check("ann").allowed);
  const Heard again = Hear(commit);
  ASSERT_TRUE(again.error.has_value());
  EXPECT_EQ(again.error->code, ErrorCode::kNotFound);
}

TEST_F(LoopEngineTest, CountsUnderLimitsThatComeWithTheQuestion) {
  Start();
  const Limit limit = *Limit::Parse("3/7s");  // No whole number of nanoseconds.
  std::string key = "any \xff bytes";
  const auto heard = Ask({.kind = Kind::kLimit, .key = key, .limit = &limit});
  key.assign(key.size(), 'x');
  loop_.Turn();
  EXPECT_EQ((*heard)->answer.decision.remaining, 2);
  EXPECT_EQ((*heard)->answer.decision.rule, "");
  const auto seen = world_.TakeSeen();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].key, "key=any%20%FF%20bytes");
  EXPECT_EQ(seen[0].rule, "");
  EXPECT_EQ(seen[0].interval % 16, 0);
  EXPECT_EQ(seen[0].on_failure, FailureMode::kStatic);
}

TEST_F(LoopEngineTest, RefusesALimitThatNoSharedStoreCounts) {
  Start();
  const Limit limit = *Limit::Parse("5M/s");
  const Heard heard = Hear({.kind = Kind::kLimit, .key = "a", .limit = &limit});
  ASSERT_TRUE(heard.error.has_value());
  EXPECT_EQ(heard.error->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(heard.answer.decision.reason, Reason::kNeverFits);
}

TEST_F(LoopEngineTest, DeniesWhereNobodyAnswersInTheStoresPlace) {
  Start();
  world_.fails = true;
  const Decision decision = Check("ann");
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kStoreFailure);
  const Limit limit = *Limit::Parse("3/s");
  const Heard limited = Hear({.kind = Kind::kLimit, .key = "a", .limit = &limit});
  EXPECT_EQ(limited.answer.decision.reason, Reason::kStoreFailure);
  EXPECT_FALSE(limited.error.has_value());
  EXPECT_TRUE(Hear({.kind = Kind::kCancel, .reservation = ReservationId{9}}).error.has_value());
  EXPECT_TRUE(engine_->Health().degraded);
  EXPECT_TRUE(engine_->Health().shared);
}

constexpr std::string_view kBans = R"(
store: redis://x
rules:
  - name: login
    key: ip
    limit: 1/min
    block: { after: 2 denials in 10min, for: 5min, growing: 2x up to 1h }
)";

TEST_F(LoopEngineTest, TellsTheRequestThatLeadsToABan) {
  Start(kBans);
  const Question question{.request = {.ip = "192.0.2.1"}};
  EXPECT_TRUE(Hear(question).answer.decision.allowed);
  EXPECT_EQ(Hear(question).answer.decision.reason, Reason::kLimited);
  const Decision banned = Hear(question).answer.decision;
  EXPECT_EQ(banned.reason, Reason::kBanned);
  EXPECT_EQ(banned.retry_after, minutes(5));
  EXPECT_EQ(Hear(question).answer.decision.reason, Reason::kBanned);
  // The next time it lasts twice as long.
  loop_.clock.Advance(minutes(6));
  EXPECT_TRUE(Hear(question).answer.decision.allowed);
  Hear(question);
  EXPECT_EQ(Hear(question).answer.decision.retry_after, minutes(10));
  bool all_named = true;
  bool has_steps = false;
  for (const auto& charge : world_.TakeSeen()) {
    all_named = all_named && charge.key == "ip=192.0.2.1" && charge.rule == "login";
    has_steps = has_steps || charge.aspect == Aspect::kBanSteps;
  }
  EXPECT_TRUE(all_named);
  EXPECT_TRUE(has_steps);
  Hear({.kind = Kind::kReset, .request = {.ip = "192.0.2.1"}});
  EXPECT_TRUE(Hear(question).answer.decision.allowed);
}

TEST_F(LoopEngineTest, AnswersWithinOneDeadlineHoweverLongDenialsTakeToCount) {
  Start(kBans);
  const Question question{.request = {.ip = "192.0.2.1"}};
  Hear(question);
  Hear(question);
  world_.holds_bans = true;
  const auto heard = Ask(question);
  loop_.Advance(SharedWorld::kTimeout - milliseconds(1));
  EXPECT_FALSE(heard->has_value());
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(heard->has_value());
  EXPECT_EQ((*heard)->answer.decision.reason, Reason::kLimited);
  EXPECT_EQ(questions_->pending(), 0U);
  // The count goes on by itself, and the ban it leads to is noted.
  world_.holds_bans = false;
  for (int i = 0; i < 8; ++i) Hear({.kind = Kind::kPeek, .request = {.ip = "192.0.2.9"}});
  EXPECT_EQ(Hear(question).answer.decision.reason, Reason::kBanned);
}

TEST_F(LoopEngineTest, AnswersAtOnceWhenTheStoreTookAllTheTimeThereWas) {
  Start(kBans);
  const Question question{.request = {.ip = "192.0.2.1"}};
  Hear(question);
  world_.holds_bans = true;
  const auto heard = Ask(question);
  loop_.clock.Advance(SharedWorld::kTimeout);
  loop_.Turn();
  EXPECT_TRUE(heard->has_value());
}

TEST_F(LoopEngineTest, TellsThoseWhoseDenialsAreBeingCountedWhenItEnds) {
  Start(kBans);
  const Question question{.request = {.ip = "192.0.2.1"}};
  Hear(question);
  world_.holds_bans = true;
  const auto heard = Ask(question);
  loop_.Turn();
  EXPECT_FALSE(heard->has_value());
  questions_.reset();
  ASSERT_TRUE(heard->has_value());
  EXPECT_EQ((*heard)->answer.decision.reason, Reason::kLimited);
}

TEST_F(LoopEngineTest, BansNobodyForAStoreThatFails) {
  Start(kBans);
  const Question question{.request = {.ip = "192.0.2.1"}};
  Hear(question);
  world_.fails = true;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Hear(question).answer.decision.reason, Reason::kStoreFailure);
  }
  world_.fails = false;
  EXPECT_EQ(Hear(question).answer.decision.reason, Reason::kLimited);
}

TEST_F(LoopEngineTest, IsAnsweredUnderThePolicyItWasAskedUnder) {
  Start();
  const auto heard = Ask({.request = {.user = "ann"}});
  ASSERT_TRUE(
      engine_->Apply(PolicyOf("store: redis://x\nrules: [{ name: other, key: ip, limit: 5/s }]")));
  loop_.Turn();
  EXPECT_EQ((*heard)->answer.decision.rule, "per-user");
  EXPECT_EQ(Check("ann").rule, "other");
}

// --- Another store ---

class MovingLoopEngineTest : public LoopEngineTest {
 protected:
  MovingLoopEngineTest() { world_.successor = &elsewhere_; }
  ~MovingLoopEngineTest() override { End(); }
  void End() {
    questions_.reset();
    engine_.reset();
  }

  SharedWorld elsewhere_{MemoryStoreOptions{.hasher = world_.state.hasher()}, loop_.clock.Read()};
};

TEST_F(MovingLoopEngineTest, AnswersWhatWasAskedWhereItWasAskedAndGoesOnElsewhere) {
  Start();
  EXPECT_EQ(Check("ann").remaining, 1);
  const auto before = Ask({.request = {.user = "ann"}});
  ASSERT_TRUE(engine_->Apply(PolicyOf(kElsewhere)));
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_EQ((*before)->answer.decision.remaining, 0);
  EXPECT_EQ(elsewhere_.TakeSeen().size(), 1U);
  EXPECT_EQ(elsewhere_.beating, 1);
}

TEST_F(MovingLoopEngineTest, AsksWhereItDidUntilItIsConnectedElsewhere) {
  Start();
  elsewhere_.connects = true;
  EXPECT_EQ(Check("ann").remaining, 1);
  ASSERT_TRUE(engine_->Apply(PolicyOf(kElsewhere)));
  EXPECT_EQ(Check("ann").remaining, 0);
  EXPECT_TRUE(elsewhere_.TakeSeen().empty());
  elsewhere_.connects = false;
  loop_.Advance(milliseconds(10));
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_EQ(elsewhere_.TakeSeen().size(), 1U);
}

TEST_F(MovingLoopEngineTest, DoesNotWaitForeverToBeConnectedElsewhere) {
  Start();
  elsewhere_.connects = true;
  ASSERT_TRUE(engine_->Apply(PolicyOf(kElsewhere)));
  EXPECT_EQ(Check("ann").remaining, 1);
  loop_.Advance(2 * SharedWorld::kTimeout);
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_EQ(elsewhere_.TakeSeen().size(), 1U);
}

TEST_F(MovingLoopEngineTest, ForgetsAStoreThatItNeverConnectedTo) {
  Start();
  elsewhere_.connects = true;
  ASSERT_TRUE(engine_->Apply(PolicyOf(kElsewhere)));
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_EQ(elsewhere_.open, 1);
  ASSERT_TRUE(engine_->Apply(PolicyOf(kInMemory)));
  loop_.Advance(milliseconds(10));
  EXPECT_EQ(elsewhere_.open, 0);
  EXPECT_EQ(Check("ann").source, Source::kMemory);
}

TEST_F(MovingLoopEngineTest, GivesAStoreItsTimeThoughItIsTwoStoresAgo) {
  Start();
  SharedWorld third(MemoryStoreOptions{.hasher = world_.state.hasher()}, loop_.clock.Read());
  elsewhere_.successor = &third;
  elsewhere_.timeout = milliseconds(1);
  world_.silent = true;
  const auto heard = Ask({.request = {.user = "ann"}});
  ASSERT_TRUE(engine_->Apply(PolicyOf(kElsewhere)));
  EXPECT_EQ(Check("ann").remaining, 1);
  std::string store(kElsewhere);
  store.replace(store.find("redis://y"), 9, "redis://z");
  ASSERT_TRUE(engine_->Apply(PolicyOf(store)));
  EXPECT_EQ(Check("ann").remaining, 1);
  loop_.Advance(milliseconds(100));
  EXPECT_EQ(elsewhere_.open, 0);
  EXPECT_EQ(world_.open, 1) << "somebody still asks there";
  loop_.Advance(4 * SharedWorld::kTimeout);
  EXPECT_EQ(world_.open, 0);
  End();
  EXPECT_EQ(third.open, 0);
}

TEST_F(MovingLoopEngineTest, LeavesTheStoreBeforeWhenAllMustBeAnswered) {
  Start();
  EXPECT_EQ(world_.open, 1);
  ASSERT_TRUE(engine_->Apply(PolicyOf(kElsewhere)));
  // Even if nobody asks.
  questions_->TakeUpStore();
  EXPECT_EQ(elsewhere_.open, 1);
  EXPECT_EQ(world_.open, 1);
  loop_.Advance(4 * SharedWorld::kTimeout);
  EXPECT_EQ(world_.open, 0);
  EXPECT_EQ(Check("ann").remaining, 1);
}

TEST_F(MovingLoopEngineTest, CountsABanWhereItsDenialWasDecided) {
  Start(kBans);
  const Question question{.request = {.ip = "192.0.2.1"}};
  Hear(question);
  world_.holds_bans = true;
  const auto heard = Ask(question);
  loop_.Turn();
  ASSERT_FALSE(heard->has_value());
  ASSERT_TRUE(engine_->Apply(PolicyOf(kInMemory)));
  questions_->TakeUpStore();
  EXPECT_FALSE(questions_->is_shared());
  // The store has gone by then; nobody is left without an answer.
  loop_.Advance(4 * SharedWorld::kTimeout);
  ASSERT_TRUE(heard->has_value());
  EXPECT_EQ((*heard)->answer.decision.reason, Reason::kLimited);
}

TEST_F(MovingLoopEngineTest, CountsBansInMemoryOnceTheStoreIsThere) {
  Start(kBans);
  const std::string rules(kBans.substr(kBans.find("rules:")));
  ASSERT_TRUE(engine_->Apply(PolicyOf(rules)));
  const Question question{.request = {.ip = "192.0.2.1"}};
  Reason last = Reason::kOk;
  for (int i = 0; i < 6; ++i) {
    const auto heard = Ask(question);
    ASSERT_TRUE(heard->has_value());
    last = (*heard)->answer.decision.reason;
  }
  EXPECT_EQ(last, Reason::kBanned);
  const RequestPart part{.request = {.ip = "192.0.2.1"}};
  const auto together = Ask({.kind = Kind::kCheckTogether, .parts = {&part, 1}});
  ASSERT_TRUE(together->has_value());
  EXPECT_EQ((*together)->answer.decision.reason, Reason::kBanned);
}

TEST_F(MovingLoopEngineTest, CountsLimitsThatComeWithRequestsInMemoryToo) {
  Start();
  ASSERT_TRUE(engine_->Apply(PolicyOf(kInMemory)));
  const Limit limit = *Limit::Parse("3/min");
  const Question question{.kind = Kind::kLimit, .key = "k", .limit = &limit};
  EXPECT_EQ(Hear(question).answer.decision.remaining, 2);
  EXPECT_EQ(Hear(question).answer.decision.remaining, 1);
  EXPECT_TRUE(world_.TakeSeen().empty());
  // What was reserved in the other store is not known here.
  const Heard settled = Hear({.kind = Kind::kCancel, .reservation = ReservationId{9}});
  ASSERT_TRUE(settled.error);
  EXPECT_EQ(settled.error->code, ErrorCode::kNotFound);
}

TEST_F(LoopEngineTest, TellsThoseStillWaitingWhenItEnds) {
  Start();
  world_.silent = true;
  const auto heard = Ask({.request = {.user = "ann"}});
  const auto settled = Ask({.kind = Kind::kCancel, .reservation = ReservationId{9}});
  bool asked_again = false;
  questions_->Ask({.request = {.user = "bob"}}, [&](const Told&) {
    questions_->Ask({.request = {.user = "bob"}}, [&](const Told& told) {
      asked_again = told.answer.decision.reason == Reason::kStoreFailure;
    });
  });
  LoopEngine* const ending = questions_.get();
  EXPECT_EQ(ending->pending(), 3U);
  // Kept in place, because one of them asks again from within its end.
  delete questions_.get();
  std::ignore = questions_.release();
  ASSERT_TRUE(heard->has_value());
  EXPECT_EQ((*heard)->answer.decision.reason, Reason::kStoreFailure);
  ASSERT_TRUE(settled->has_value());
  EXPECT_TRUE((*settled)->error.has_value());
  EXPECT_TRUE(asked_again);
}

TEST_F(LoopEngineTest, SaysThatThisProcessIsThereOnce) {
  Start();
  const auto another = LoopEngine::Make(*engine_, loop_);
  EXPECT_EQ(world_.opened, 2);
  EXPECT_EQ(world_.beating, 1);
}

TEST_F(LoopEngineTest, AsksUnderAsManyRulesAsAGroupHolds) {
  // Each counts somebody else, by a name as long as they may be.
  std::vector<std::string> names;
  for (int i = 0; i < 65; ++i) names.push_back("x-" + std::to_string(100 + i));
  const std::string value(83, 'v');
  std::string rules = "store: redis://x\nrules:\n";
  std::vector<NamedValue> headers;
  for (const std::string& name : names) {
    rules += "  - { name: by-" + name + ", match: { header." + name + ": present }, key: header." +
             name + ", limit: 2/min }\n";
    headers.push_back({name, value});
  }
  Start(rules);
  for (std::size_t count = 1; count <= 64; ++count) {
    const Heard heard = Hear({.request = {.headers = std::span(headers).first(count)}});
    ASSERT_EQ(heard.each.size(), count);
    // The last is new to the store; all others have been asked twice and more.
    EXPECT_EQ(heard.answer.decision.allowed, count <= 2) << count;
    EXPECT_EQ(heard.each.back().decision.rule, "by-" + names[count - 1]);
    EXPECT_TRUE(heard.each.back().decision.allowed) << count;
    const auto seen = world_.TakeSeen();
    ASSERT_EQ(seen.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(seen[i].key, "header." + names[i] + "=" + value);
    }
    EXPECT_EQ(questions_->pending(), 0U);
  }
  const Heard heard = Hear({.request = {.headers = headers}});
  EXPECT_EQ(heard.answer.decision.reason, Reason::kOverload);
  EXPECT_TRUE(world_.TakeSeen().empty());
}

TEST_F(LoopEngineTest, AnswersManyAtATime) {
  Start("store: redis://x\nrules: [{ name: x, key: user, limit: 1/h }]");
  std::vector<std::shared_ptr<std::optional<Heard>>> all;
  for (int i = 0; i < 500; ++i) {
    const std::string user = "u" + std::to_string(i / 2);
    all.push_back(Ask({.request = {.user = user}}));
  }
  EXPECT_EQ(questions_->pending(), 500U);
  loop_.Turn();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ((*all[i])->answer.decision.allowed, i % 2 == 0) << i;
  }
  EXPECT_EQ(questions_->pending(), 0U);
}

// --- Requests of several parts. ---

TEST_F(LoopEngineTest, DecidesPartsTogether) {
  Start();
  const std::vector<RequestPart> parts = {{.request = {.user = "ann"}, .cost = 2},
                                          {.request = {.user = "bob"}}};
  const Heard heard = Hear({.kind = Kind::kCheckTogether, .parts = parts});
  EXPECT_TRUE(heard.answer.decision.allowed);
  EXPECT_EQ(heard.answer.decision.source, Source::kStore);
  ASSERT_EQ(heard.each.size(), 2U);
  EXPECT_EQ(heard.each[0].decision.remaining, 0);
  EXPECT_EQ(heard.each[1].decision.remaining, 1);
  const Heard denied = Hear({.kind = Kind::kCheckTogether, .parts = parts});
  EXPECT_FALSE(denied.answer.decision.allowed);
  EXPECT_EQ(denied.answer.message, "slow down");
  EXPECT_EQ(Hear({.kind = Kind::kPeek, .request = {.user = "bob"}}).answer.decision.remaining, 1)
      << "nothing was taken";
  const Heard refund = Hear({.kind = Kind::kRefundTogether, .parts = parts});
  EXPECT_EQ(refund.each[0].decision.remaining, 2);
  EXPECT_EQ(questions_->pending(), 0U);
}

TEST_F(LoopEngineTest, CountsPartsWithLimitsOfTheirOwn) {
  Start();
  const Limit limit = *Limit::Parse("3/min");
  const std::vector<RequestPart> parts = {{.cost = 2, .limit = &limit, .key = "k"},
                                          {.request = {.user = "ann"}}};
  EXPECT_EQ(Hear({.kind = Kind::kCheckTogether, .parts = parts}).each[0].decision.remaining, 1);
  EXPECT_FALSE(Hear({.kind = Kind::kCheckTogether, .parts = parts}).answer.decision.allowed);
  EXPECT_EQ(Hear({.kind = Kind::kLimit, .key = "k", .limit = &limit}).answer.decision.remaining, 0);
}

}  // namespace
}  // namespace weir
