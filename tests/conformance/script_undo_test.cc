// What a bucket gives back of requests that were denied by a key elsewhere, in whatever order and
// however late: just what is left of them, by a bucket that remembers every charge.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "asked_groups.h"
#include "random.h"
#include "script_store.h"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

// Drains its charges in the order in which they came.
class RememberingBucket {
 public:
  void Advance(Duration time) {
    while (time > Duration(0) && !charges_.empty()) {
      const Duration drained = std::min(time, charges_.front().left);
      charges_.front().left -= drained;
      time -= drained;
      if (charges_.front().left == Duration(0)) charges_.pop_front();
    }
  }
  void Charge(int number, Duration level) { charges_.push_back({number, level}); }
  // Gives it back, all that is left of it but for this, which stays in its place.
  void Undo(int number, Duration kept) {
    for (Charged& charged : charges_) {
      if (charged.number == number) charged.left = kept;
    }
  }
  Duration level() const {
    Duration sum{0};
    for (const Charged& charged : charges_) sum += charged.left;
    return sum;
  }

 private:
  struct Charged {
    int number;
    Duration left;
  };
  std::deque<Charged> charges_;
};

class ScriptUndo : public testing::Test {
 protected:
  struct Taken {
    int number;
    Receipt receipt;
    WallTime at;
  };

  // Instead of 10/s burst 200.
  void Use(std::string_view limit, Duration interval) {
    limit_ = *Limit::Parse(limit)->ForSharedStore();
    interval_ = interval;
  }
  void Wait(Duration time) {
    now_ += time;
    bucket_.Advance(time);
  }
  // None if it is denied.
  std::optional<Taken> Take(std::int64_t cost) {
    Charge charge{.rule = "r", .key = "k", .limit = &limit_, .cost = cost};
    Decision decision;
    Receipt receipt;
    Group group{.charges = {&charge, 1}, .decisions = {&decision, 1}, .receipts = {&receipt, 1}};
    redis::ScriptCall call;
    call.Add(group, now_);
    Run(call);
    if (!group.decision.allowed) return std::nullopt;
    bucket_.Charge(++last_, cost * interval_);
    return Taken{last_, receipt, group.decided_at};
  }
  // In as few calls as may be.
  void Undo(std::span<const Taken> all) {
    std::deque<Charge> charges;
    std::deque<Decision> decisions;
    std::deque<Group> groups;
    redis::ScriptCall call;
    for (const Taken& taken : all) {
      charges.push_back({.rule = "r",
                         .key = "k",
                         .limit = &limit_,
                         .cost = 0,
                         .verb = Verb::kSettle,
                         .reserved = taken.receipt.charged,
                         .receipt = taken.receipt.at});
      groups.push_back(
          {.charges = {&charges.back(), 1}, .decisions = {&decisions.emplace_back(), 1}});
      const redis::ScriptCall::Part part{.taken_at = taken.at};
      if (call.Add(groups.back(), now_, part)) continue;
      Run(call);
      call.Clear();
      call.Add(groups.back(), now_, part);
    }
    Run(call);
    for (const Taken& taken : all) bucket_.Undo(taken.number, Duration(0));
    kept_ = Level() - bucket_.level();
    bucket_.Undo(all.back().number, kept_);
  }
  void Undo(const Taken& taken) { Undo({&taken, 1}); }
  // Until the bucket is full, as the script has it.
  Duration Level() {
    const sim::Reply reply = store_.redis().Execute({"GET", "weir1:{k}:r:t"});
    if (reply.text.empty()) return Duration(0);
    return std::max(Duration(0), redis::kEpoch + Duration(std::stoll(reply.text)) - now_);
  }

  template <typename Check>
  void TakeAndUndo(std::uint64_t seed, Duration longest_pause, Duration longest_delay,
                   Check&& check);

  Limit limit_ = *Limit::Parse("10/s burst 200")->ForSharedStore();
  Duration interval_ = 100ms;
  WallTime now_ = kStart;
  int last_ = 0;
  int undone_ = 0;
  Duration kept_{0};  // Of what was undone last.
  RememberingBucket bucket_;
  ScriptStore store_{ScriptStore::Expiry::kAsTold};

 private:
  void Run(redis::ScriptCall& call) {
    store_.redis().SetTime(std::chrono::floor<std::chrono::microseconds>(now_.time_since_epoch()));
    store_.Run(call);
    EXPECT_EQ(store_.problem(), "");
    call.ForEachGroup([](Group& group) { EXPECT_FALSE(group.error.has_value()); });
  }
};

TEST_F(ScriptUndo, GivesBackNothingThatHasDrainedBecauseAnotherWasUndone) {
  const auto first = Take(5);
  const auto second = Take(5);
  Undo(*first);
  Wait(500ms);
  Take(5);
  Undo(*second);  // Nothing of it is left.
  EXPECT_EQ(Level(), 500ms);
}

TEST_F(ScriptUndo, GivesBackAllInWhateverOrder) {
  const auto first = Take(5);
  Wait(1ms);
  const auto second = Take(5);
  Wait(1ms);
  const auto third = Take(5);
  Wait(1ms);
  Undo(*second);
  Undo(*third);
  Wait(1ms);
  Undo(*first);
  EXPECT_EQ(Level(), 0ms);
}

TEST_F(ScriptUndo, KnowsTheOrderOfWhatWasTakenInTheMicrosecondOfAnUndo) {
  const auto earliest = Take(2);
  Wait(1ms);
  const auto first = Take(5);
  Undo(*earliest);
  const auto second = Take(1);  // Ends before the first seemed to.
  Wait(1ms);
  Undo(*first);
  Wait(150ms);
  Take(5);
  Undo(*second);
  EXPECT_EQ(Level(), 500ms);
}

TEST_F(ScriptUndo, GivesBackNoMoreThanWhatCannotHaveDrainedWhenItComesLate) {
  const auto first = Take(5);
  const auto second = Take(12);
  const auto third = Take(5);
  Undo(*first);
  Wait(1100ms);
  Take(5);
  Undo(*second);  // 1.2 s less 1.1 s.
  EXPECT_EQ(Level(), 1s);
  Undo(*third);  // Nothing for certain.
  EXPECT_EQ(Level(), 1s);
}

TEST_F(ScriptUndo, GivesBackAllOfAHundredInTheirOrder) {
  Take(50);
  std::vector<Taken> many;
  for (int i = 0; i < 100; ++i) many.push_back(*Take(1));
  const auto last = Take(1);
  Wait(150ms);  // In which any of them would have drained.
  Undo(many);
  EXPECT_EQ(Level(), 4950ms);
  Wait(5s);
  Take(5);
  Undo(*last);
  EXPECT_EQ(Level(), 500ms);
}

// Sixty a millisecond, each undone three milliseconds later, in which thirty could have drained.
TEST_F(ScriptUndo, IsNotFilledByAFloodOfDeniedRequests) {
  Use("10000/s burst 20000", 100us);
  std::deque<std::vector<Taken>> under_way;
  Duration most{0};
  for (int round = 0; round < 300; ++round) {
    under_way.emplace_back();
    for (int i = 0; i < 60; ++i) under_way.back().push_back(*Take(1));
    Wait(1ms);
    if (under_way.size() < 3) continue;
    Undo(under_way.front());
    under_way.pop_front();
    ASSERT_GE(kept_, 0ms) << round;
    most = std::max(most, Level());
  }
  EXPECT_LE(most, 3 * 60 * interval_) << "more than what is under way";
}

TEST_F(ScriptUndo, KnowsNoOrderThatTheClockDidNotKeep) {
  Wait(10ms);
  const auto first = Take(5);
  now_ -= 10ms;
  const auto second = Take(5);  // Behind it, and taken earlier.
  Wait(1ms);
  Undo(*first);
  const Duration after = Level();
  Wait(400ms);
  Take(5);
  Undo(*second);
  EXPECT_GE(Level(), after - 400ms + 500ms - 100ms) << "100 ms of it were left for certain";
}

TEST_F(ScriptUndo, ReplacesWhatIsNotItsOwn) {
  Take(5);
  for (const int round : {1, 2}) {
    const auto taken = Take(5);
    const std::string_view command = round == 1 ? "SET" : "LPUSH";
    store_.redis().Execute({command, "weir1:{k}:r:undone:t", "somebody else's"});
    Wait(1ms);
    Undo(*taken);
    EXPECT_EQ(kept_, 0ms);
    EXPECT_EQ(store_.corrupt(), static_cast<std::size_t>(round)) << "each is counted";
    store_.redis().Execute({"DEL", "weir1:{k}:r:undone:t"});
  }
}

// Charges, some of which are undone in any order.
template <typename Check>
void ScriptUndo::TakeAndUndo(std::uint64_t seed, Duration longest_pause, Duration longest_delay,
                             Check&& check) {
  Random random(seed);
  std::deque<Taken> open;
  for (int step = 0; step < 200; ++step) {
    Wait(std::chrono::microseconds(random.Between(0, longest_pause / 1us)));
    while (!open.empty() && now_ - open.front().at >= longest_delay) open.pop_front();
    if (open.empty() || random.Chance(60)) {
      const auto taken = Take(random.Between(1, 6));
      if (taken && random.Chance(75)) open.push_back(*taken);
    } else {
      const auto which = open.begin() + random.Between(0, std::ssize(open) - 1);
      Undo(*which);
      open.erase(which);
      ++undone_;
      ASSERT_NO_FATAL_FAILURE(check()) << "seed " << seed << ", step " << step;
    }
    ASSERT_EQ(Level(), bucket_.level()) << "seed " << seed << ", step " << step;
  }
  Wait(60s);
}

TEST_F(ScriptUndo, AgreesWithABucketThatRemembersEveryCharge) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    ASSERT_NO_FATAL_FAILURE(TakeAndUndo(seed, 80ms, 900ms, [&] { ASSERT_EQ(kept_, 0ms); }));
  }
  EXPECT_GT(undone_, 4'000);
}

// So late, so many or so close together that not all can be known.
TEST_F(ScriptUndo, GivesBackTooLittleRatherThanTooMuch) {
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const std::array<Duration, 3> pauses = {2us, 1ms, 30ms};
    ASSERT_NO_FATAL_FAILURE(TakeAndUndo(seed, pauses[seed % pauses.size()], 60s, [&] {
      ASSERT_GE(kept_, 0ms);
      kept += kept_ > 0ms ? 1 : 0;
    }));
  }
  EXPECT_GT(undone_, 4'000);
  EXPECT_GT(kept, 10);
}

// So many that it has to be brief about most of them.
TEST_F(ScriptUndo, GivesBackNoMoreThanIsLeftWhenManyAreUndoneInAnyOrder) {
  Use("10000/s burst 20000", 100us);
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const std::array<Duration, 3> pauses = {150us, 600us, 1ms};
    const std::array<Duration, 2> delays = {5ms, 40ms};
    ASSERT_NO_FATAL_FAILURE(TakeAndUndo(seed, pauses[seed % pauses.size()],
                                        delays[seed % delays.size()],
                                        [&] { ASSERT_GE(kept_, 0ms); }));
  }
  EXPECT_GT(undone_, 10'000);
}

}  // namespace
}  // namespace weir::conformance
