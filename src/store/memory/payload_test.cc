// The state that lies in a slot must do what the pure steps do on their own state.
#include "store/memory/payload.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "algorithm/fixed_window.h"
#include "algorithm/sliding_window.h"
#include "algorithm/strict_window.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::seconds;

std::vector<AlgorithmCase> WideAlgorithms() {
  std::vector<AlgorithmCase> cases = EveryAlgorithm();
  std::erase_if(cases, [](const AlgorithmCase& it) { return it.is_bucket(); });
  cases.push_back({"CalendarDay", LimitOf("10/day", {.algorithm = Algorithm::kFixedWindow,
                                                     .align = Align::kCalendar})});
  return cases;
}

class Payload : public testing::TestWithParam<AlgorithmCase> {
 protected:
  const Limit& limit() const { return GetParam().limit; }

  PayloadStep Do(const StepRequest& request, Effect effect = Effect::kApply) {
    PayloadState state(limit(), pool_, payload_.data(), fresh_at_);
    const PayloadStep step = state.Do(request, timeline_.At(clock_.Read()), effect);
    const bool told = effect == Effect::kApply || !step.decision.allowed;
    if (told && step.decision.reason != Reason::kOverload) fresh_at_ = step.fresh_at;
    return step;
  }
  Decision Check(std::int64_t cost = 1) { return Do({.cost = cost}).decision; }

  ManualClock clock_;
  Timeline timeline_{clock_.Read()};
  ByteBudget budget_{std::size_t{2} << 20};
  EventPool pool_{budget_, 0};
  std::array<std::uint64_t, kMaxSubWindows + 2> payload_{};
  Ticks fresh_at_{0};
};

TEST_P(Payload, IsFreshWhenBlank) {
  const PayloadStep step = Do({.verb = Verb::kPeek});
  EXPECT_TRUE(step.decision.allowed);
  EXPECT_EQ(step.decision.remaining, 10);
  EXPECT_EQ(step.decision.reset_after, Duration(0));
}

TEST_P(Payload, IsLeftAloneByAStepThatOnlyDecides) {
  Check(3);
  const auto before = payload_;
  const Ticks fresh_at = fresh_at_;
  for (const Verb verb : {Verb::kCheck, Verb::kPeek, Verb::kPenalize}) {
    EXPECT_TRUE(Do({.verb = verb, .cost = 2}, Effect::kDecideOnly).decision.allowed);
    EXPECT_FALSE(Do({.cost = 8}, Effect::kDecideOnly).decision.allowed);
  }
  EXPECT_EQ(payload_, before);
  EXPECT_EQ(fresh_at_, fresh_at);
}

TEST_P(Payload, IsLeftAloneByADenial) {
  Check(8);
  const auto before = payload_;
  const Ticks fresh_at = fresh_at_;
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(Check(3).allowed);
  EXPECT_FALSE(Check(11).allowed);
  EXPECT_EQ(payload_, before);
  EXPECT_EQ(fresh_at_, fresh_at);
}

TEST_P(Payload, AnswersTheSameWhenItDecidesFirstAndAppliesLater) {
  Check(2);
  clock_.Advance(seconds(1));
  PayloadState state(limit(), pool_, payload_.data(), fresh_at_);
  const Instant at = timeline_.At(clock_.Read());
  const PayloadStep decided = state.Do({.cost = 5}, at, Effect::kDecideOnly);
  const PayloadStep applied = state.Do({.cost = 5}, at, Effect::kApply);
  EXPECT_TRUE(applied.decision.allowed);
  EXPECT_EQ(decided.decision.allowed, applied.decision.allowed);
  EXPECT_EQ(decided.decision.remaining, applied.decision.remaining);
  EXPECT_EQ(applied.decision.remaining, 3);
  EXPECT_EQ(applied.charged, 5);
}

TEST_P(Payload, GoesOnUnderALargerLimitInProportion) {
  if (GetParam().is_concurrency()) return;  // Has nothing to carry.
  Check(5);
  LimitSpec spec = limit().spec();
  spec.count = 15;
  const Limit larger = *Limit::Make(spec);
  PayloadState state(limit(), pool_, payload_.data(), fresh_at_);
  const Ticks fresh_at = state.CarryTo(larger);
  PayloadState carried(larger, pool_, payload_.data(), fresh_at);
  const Decision decision =
      carried.Do({.verb = Verb::kPeek}, timeline_.At(clock_.Read()), Effect::kDecideOnly).decision;
  EXPECT_EQ(decision.limit, 15);
  EXPECT_EQ(decision.remaining, 15 - 8);  // 7.5 used, rounded up.
}

TEST_P(Payload, IsMendedByADenialAfterClockDamage) {
  Check(10);
  const Ticks damaged = fresh_at_;
  clock_.Advance(-std::chrono::days(40));
  EXPECT_FALSE(Check().allowed);
  EXPECT_LT(fresh_at_, damaged);
  clock_.Advance(limit().time_to_fresh() + Duration(1));
  EXPECT_TRUE(Check().allowed);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Payload, testing::ValuesIn(WideAlgorithms()),
                         NameOfAlgorithm());

// The steps on a state of their own, as the algorithms define it.
class PureState {
 public:
  explicit PureState(const Limit& limit) : limit_(limit) {}

  Decision Do(const StepRequest& request, const Instant& at) {
    if (limit_.algorithm() == Algorithm::kFixedWindow) {
      return Keep(StepFixedWindow(limit_, fixed_, request, at), fixed_);
    }
    if (limit_.spec().strict) return Keep(StepStrictWindow(limit_, strict_, request, at), strict_);
    return Keep(StepSlidingWindow(limit_, sliding_, request, at), sliding_);
  }

 private:
  template <typename State>
  Decision Keep(const Step<State>& step, State& state) {
    state = step.next;
    receipt = step.receipt;
    return step.decision;
  }

  const Limit& limit_;
  FixedWindowState fixed_;
  SlidingWindowState sliding_;
  StrictWindowState strict_;

 public:
  Ticks receipt{0};
};

class WindowPayload : public Payload {};

TEST_P(WindowPayload, DoesWhatThePureStepDoesOnRandomTraces) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
    payload_ = {};
    fresh_at_ = Ticks(0);
    PureState pure(limit());
    for (int i = 0; i < 300; ++i) {
      const auto most = static_cast<int>(limit().time_to_fresh().count() / 2'000'000'000);
      const int step = pick(99);
      if (step < 60) clock_.Advance(seconds(pick(most) / 4) + Duration(pick(1'000'000'000)));
      if (step == 60) clock_.Advance(limit().time_to_fresh() * 3);
      if (step == 61) clock_.Advance(-limit().time_to_fresh() * pick(3));
      const StepRequest request{.verb = static_cast<Verb>(pick(5)),
                                .cost = pick(4),
                                .reserved = pick(4),
                                .receipt = pure.receipt};
      const Decision expected = pure.Do(request, timeline_.At(clock_.Read()));
      const Decision found = Do(request).decision;
      ASSERT_EQ(found.allowed, expected.allowed) << i;
      ASSERT_EQ(found.remaining, expected.remaining) << i;
      ASSERT_EQ(found.retry_after, expected.retry_after) << i;
      ASSERT_EQ(found.reset_after, expected.reset_after) << i;
    }
  }
}

// Of those that keep a log the log is the state.
std::vector<AlgorithmCase> Windows() {
  std::vector<AlgorithmCase> cases = WideAlgorithms();
  std::erase_if(cases, [](const AlgorithmCase& it) {
    return it.is_concurrency() || it.limit.algorithm() == Algorithm::kSlidingLog;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, WindowPayload, testing::ValuesIn(Windows()),
                         NameOfAlgorithm());

}  // namespace
}  // namespace weir
