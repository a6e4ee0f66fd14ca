// Reservations and leases through the embedded API.
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/limiter.h>

#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

static_assert(!std::is_copy_constructible_v<Reservation>);
static_assert(!std::is_copy_constructible_v<Lease>);
static_assert(std::is_nothrow_move_constructible_v<Lease>);

class Reservations : public testing::TestWithParam<AlgorithmCase> {
 protected:
  std::int64_t Used() { return GetParam().at_once - limiter_.Peek("ann")->remaining; }
  std::int64_t Settled(std::int64_t cost) { return GetParam().Settled(cost); }

  ManualClock clock_;
  Limiter limiter_ = *Limiter::Make(GetParam().limit, {.clock = &clock_});
};

TEST_P(Reservations, GiveBackWhatTheRealCostDidNotNeed) {
  Result<Reservation> reservation = limiter_.Reserve("ann", {.cost = 8});
  ASSERT_TRUE(reservation);
  EXPECT_TRUE(reservation->allowed());
  EXPECT_EQ(reservation->decision().cost, 8);
  EXPECT_EQ(limiter_.Stats().reservations, 1U);
  ASSERT_TRUE(reservation->Commit(3));
  EXPECT_EQ(Used(), Settled(3));
  EXPECT_EQ(limiter_.Stats().reservations, 0U);
}

TEST_P(Reservations, ChargeWhatTheRealCostNeededBeyond) {
  Result<Reservation> reservation = limiter_.Reserve("ann", {.cost = 2});
  ASSERT_TRUE(reservation->Commit(9));
  EXPECT_EQ(Used(), Settled(9));
}

TEST_P(Reservations, GiveAllBackWhenCancelled) {
  Result<Reservation> reservation = limiter_.Reserve("ann", {.cost = 6});
  ASSERT_TRUE(reservation->Cancel());
  EXPECT_EQ(limiter_.Peek("ann")->remaining, 10);
}

TEST_P(Reservations, AreSettledOnceThoughBothByHandleAndById) {
  Result<Reservation> reservation = limiter_.Reserve("ann", {.cost = 6});
  const ReservationId id = reservation->decision().reservation;
  ASSERT_TRUE(limiter_.Commit(id, 4));
  EXPECT_EQ(reservation->Commit(1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reservation->Cancel().error().code, ErrorCode::kNotFound);
  EXPECT_EQ(limiter_.Cancel(id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Used(), Settled(4));
}

TEST_P(Reservations, LeaveTheChargeWhenTheHandleIsDropped) {
  {
    const Result<Reservation> dropped = limiter_.Reserve("ann", {.cost = 6});
  }
  EXPECT_EQ(Used(), 6);
}

TEST_P(Reservations, LeaveTheChargeWhenTheirTimeIsOver) {
  Result<Reservation> reservation = limiter_.Reserve("ann", {.cost = 6}, milliseconds(5));
  clock_.Advance(milliseconds(5));
  EXPECT_EQ(reservation->Cancel().error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Used(), 6);
}

TEST_P(Reservations, MoveWithTheirHandle) {
  Result<Reservation> made = limiter_.Reserve("ann", {.cost = 6});
  Reservation first = *std::move(made);
  Reservation second = std::move(first);
  EXPECT_FALSE(first.allowed());  // NOLINT(bugprone-use-after-move): says that it holds nothing.
  EXPECT_EQ(first.Commit(1).error().code, ErrorCode::kNotFound);
  Result<Reservation> other = limiter_.Reserve("ann", {.cost = 1});
  *other = std::move(second);  // What `other` had taken stays charged.
  EXPECT_EQ(Used(), 7);
  ASSERT_TRUE(other->Cancel());
  EXPECT_EQ(Used(), 1);
}

TEST_P(Reservations, HoldNothingWhenDenied) {
  limiter_.Check("ann", Ask{.cost = 8}).value();
  Result<Reservation> denied = limiter_.Reserve("ann", {.cost = 8});
  ASSERT_TRUE(denied);
  EXPECT_FALSE(denied->allowed());
  EXPECT_EQ(denied->decision().reason, Reason::kLimited);
  EXPECT_EQ(denied->Commit(1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Used(), 8);
}

TEST_P(Reservations, RefuseACostOrATimeOutOfRangeAndStayOpen) {
  for (const Duration ttl : {Duration(-1), kMaxPeriod + Duration(1), kNever}) {
    const auto refused = limiter_.Reserve("ann", {}, ttl);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("ttl:"), HasSubstr("write ")));
  }
  EXPECT_EQ(limiter_.Stats().entries, 0U);
  Result<Reservation> reservation = limiter_.Reserve("ann", {.cost = 6});
  for (const std::int64_t cost : {std::int64_t{-1}, kMaxCount + 1}) {
    const auto refused = reservation->Commit(cost);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("cost:"), HasSubstr("write 0 to ")));
  }
  EXPECT_TRUE(reservation->Commit(2));
  EXPECT_EQ(Used(), Settled(2));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Reservations, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

TEST(LayeredReservation, IsSettledInEveryLayerAndNamesTheTightest) {
  ManualClock clock;
  Limiter limiter = *Limiter::Make(
      {{"tenant", LimitOf("1000/min")},
       {"user", LimitOf("100/min", {.algorithm = Algorithm::kFixedWindow})},
       {"trial", LimitOf("50/min", {.algorithm = Algorithm::kSlidingLog}), /*shadow=*/true}},
      {.clock = &clock});
  Result<Reservation> reservation = limiter.Reserve({"acme", "ann", "acme"}, {.cost = 40});
  ASSERT_TRUE(reservation->allowed());
  const Result<Decision> settled = reservation->Commit(70);
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->rule, "user");  // The shadow, though it is tighter, has no say.
  EXPECT_EQ(settled->remaining, 30);
  EXPECT_EQ(settled->cost, 70);
  EXPECT_EQ(limiter.Peek({"acme", kSkip, kSkip})->remaining, 930);
  EXPECT_EQ(limiter.Peek({kSkip, "ann", kSkip})->remaining, 30);
}

TEST(ReservationTable, IsBounded) {
  ManualClock clock;
  Limiter limiter = *Limiter::Make("100/s", {.clock = &clock, .max_reservations = 2});
  Result<Reservation> one = limiter.Reserve("ann");
  Result<Reservation> two = limiter.Reserve("bob");
  Result<Reservation> three = limiter.Reserve("cat", {.cost = 5});
  ASSERT_TRUE(three);
  EXPECT_EQ(three->decision().reason, Reason::kOverload);
  EXPECT_EQ(limiter.Peek("cat")->remaining, 100);
  ASSERT_TRUE(one->Cancel());
  EXPECT_TRUE(limiter.Reserve("cat")->allowed());
}

// --- Leases ---

class Leases : public testing::Test {
 protected:
  std::int64_t Free() { return limiter_.Peek("ann")->remaining; }

  ManualClock clock_;
  Limiter limiter_ = *Limiter::Make("3 concurrent lease 10s", {.clock = &clock_});
};

TEST_F(Leases, AreGivenBackWhenTheyGoOutOfScope) {
  {
    const Result<Lease> lease = limiter_.Acquire("ann", {.cost = 2});
    ASSERT_TRUE(lease->allowed());
    EXPECT_NE(lease->decision().reservation, ReservationId::kNone);
    EXPECT_EQ(Free(), 1);
  }
  EXPECT_EQ(Free(), 3);
}

TEST_F(Leases, AreGivenBackOnce) {
  Result<Lease> lease = limiter_.Acquire("ann");
  const Result<Lease> other = limiter_.Acquire("ann");
  lease->Release();
  EXPECT_EQ(Free(), 2);
  lease->Release();
  EXPECT_EQ(Free(), 2);
}

TEST_F(Leases, AreGivenBackByTheirIdAndTheHandleNoticesNothing) {
  {
    const Result<Lease> lease = limiter_.Acquire("ann");
    ASSERT_TRUE(limiter_.Release(lease->decision().reservation));
    EXPECT_EQ(Free(), 3);
  }
  EXPECT_EQ(Free(), 3);
}

TEST_F(Leases, CanBeTakenByACheckAndReleasedById) {
  const Decision decision = limiter_.Check("ann");
  ASSERT_TRUE(decision.allowed);
  EXPECT_EQ(Free(), 2);
  ASSERT_TRUE(limiter_.Release(decision.reservation));
  EXPECT_EQ(Free(), 3);
  EXPECT_EQ(limiter_.Release(decision.reservation).error().code, ErrorCode::kNotFound);
}

TEST_F(Leases, OfADeadHolderEndByThemselves) {
  const Decision dead = limiter_.Check("ann", Ask{.cost = 3}).value();
  const Decision denied = limiter_.Check("ann");
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, seconds(10));
  clock_.Advance(seconds(10));
  const Result<Lease> heir = limiter_.Acquire("ann", {.cost = 3});
  EXPECT_TRUE(heir->allowed());
  EXPECT_FALSE(limiter_.Release(dead.reservation));
  EXPECT_EQ(Free(), 0);
}

TEST_F(Leases, HeldBeyondTheirTimeTakeNothingFromOthersWhenReleased) {
  std::optional<Lease> late = *limiter_.Acquire("ann");
  clock_.Advance(seconds(10));
  const Result<Lease> other = limiter_.Acquire("ann", {.cost = 3});
  ASSERT_TRUE(other->allowed());
  late.reset();
  EXPECT_EQ(Free(), 0);
}

TEST_F(Leases, MoveWithTheirHandle) {
  Lease first = *limiter_.Acquire("ann");
  {
    Lease second = std::move(first);
    first.Release();  // NOLINT(bugprone-use-after-move): holds nothing any more.
    EXPECT_EQ(Free(), 2);
  }
  EXPECT_EQ(Free(), 3);
}

TEST_F(Leases, AreGivenBackWhenAnotherTakesTheirHandle) {
  Lease kept = *limiter_.Acquire("ann", {.cost = 2});
  kept = *limiter_.Acquire("ann");
  EXPECT_EQ(Free(), 2);
  Lease& same = kept;
  kept = std::move(same);
  EXPECT_TRUE(kept.allowed());
  EXPECT_EQ(Free(), 2);
}

TEST_F(Leases, HoldNothingWhenDenied) {
  const Result<Lease> all = limiter_.Acquire("ann", {.cost = 3});
  {
    const Result<Lease> denied = limiter_.Acquire("ann");
    ASSERT_TRUE(denied);
    EXPECT_FALSE(denied->allowed());
    EXPECT_EQ(denied->decision().reason, Reason::kLimited);
  }
  EXPECT_EQ(Free(), 0);
  EXPECT_EQ(limiter_.Stats().reservations, 1U);
}

TEST_F(Leases, GiveBackOnlyThePlacesOfALayeredRequest) {
  Limiter limiter =
      *Limiter::Make({{"places", LimitOf("2 concurrent lease 10s")}, {"rate", LimitOf("10/min")}},
                     {.clock = &clock_});
  {
    const Result<Lease> lease = limiter.Acquire({"ann", "ann"});
  }
  EXPECT_EQ(limiter.Peek({"ann", kSkip})->remaining, 2);
  EXPECT_EQ(limiter.Peek({kSkip, "ann"})->remaining, 9);
}

TEST_F(Leases, UnderALimitOfAnotherKindAreJustChecks) {
  Limiter limiter = *Limiter::Make("2/min", {.clock = &clock_});
  {
    const Result<Lease> lease = limiter.Acquire("ann");
  }
  EXPECT_EQ(limiter.Peek("ann")->remaining, 1);
}

TEST_F(Leases, AreTakenInABatchToo) {
  const std::vector<BatchItem> items(5, BatchItem{.key = "ann"});
  std::vector<Decision> decisions(5);
  ASSERT_TRUE(limiter_.CheckBatch(items, decisions));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(decisions[i].allowed, i < 3);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(limiter_.Release(decisions[i].reservation));
  EXPECT_EQ(Free(), 3);
}

TEST_F(Leases, BeyondTheReservationTableAreAnOverload) {
  Limiter limiter = *Limiter::Make("9 concurrent", {.clock = &clock_, .max_reservations = 1});
  const Result<Lease> one = limiter.Acquire("ann");
  const Result<Lease> two = limiter.Acquire("ann");
  EXPECT_EQ(two->decision().reason, Reason::kOverload);
  EXPECT_EQ(limiter.Peek("ann")->remaining, 8);
}

}  // namespace
}  // namespace weir
