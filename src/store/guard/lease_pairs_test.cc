#include "store/guard/lease_pairs.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::seconds;

constexpr SteadyTime kNow{seconds(100)};

ReservationId Id(std::uint64_t number) { return ReservationId{number}; }

TEST(LeasePairs, GiveTheLocalOneOnce) {
  LeasePairs pairs(64);
  EXPECT_EQ(pairs.Take(Id(1)), ReservationId::kNone);
  pairs.Put(Id(1), Id(7), kNow + seconds(30), kNow);
  EXPECT_EQ(pairs.Take(Id(2)), ReservationId::kNone);
  EXPECT_EQ(pairs.Take(Id(1)), Id(7));
  EXPECT_EQ(pairs.Take(Id(1)), ReservationId::kNone);
}

TEST(LeasePairs, ForgetWhatEndsSoonestWhenThereAreTooMany) {
  LeasePairs pairs(4);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    pairs.Put(Id(i), Id(100 + i), kNow + seconds(static_cast<int>(i)), kNow);
  }
  EXPECT_EQ(pairs.Take(Id(1)), ReservationId::kNone);
  for (std::uint64_t i = 2; i <= 5; ++i) EXPECT_EQ(pairs.Take(Id(i)), Id(100 + i));
}

TEST(LeasePairs, ForgetWhatIsPastFirst) {
  LeasePairs pairs(4);
  pairs.Put(Id(1), Id(101), kNow + seconds(60), kNow);
  for (std::uint64_t i = 2; i <= 4; ++i) pairs.Put(Id(i), Id(100 + i), kNow + seconds(1), kNow);
  const SteadyTime later = kNow + seconds(10);
  for (std::uint64_t i = 5; i <= 7; ++i) pairs.Put(Id(i), Id(100 + i), later + seconds(1), later);
  EXPECT_EQ(pairs.Take(Id(1)), Id(101));
  for (std::uint64_t i = 5; i <= 7; ++i) EXPECT_EQ(pairs.Take(Id(i)), Id(100 + i));
}

}  // namespace
}  // namespace weir
