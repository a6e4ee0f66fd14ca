// threads
#include "store/memory/reservations.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr Ticks kOpenedAt(1'000);
constexpr Ticks kLater(2'000);

Reserved Charged(std::int64_t cost) {
  static const Limit limit = *Limit::Parse("10/s");
  return {.rule = 1,
          .hash = 7,
          .limit = &limit,
          .shadow = false,
          .times = 1,
          .cost = cost,
          .receipt = Ticks(3)};
}

// The costs that a settled reservation had, or nothing if there was none.
std::optional<std::vector<std::int64_t>> Settle(Reservations& reservations, ReservationId id,
                                                Ticks now = kOpenedAt) {
  std::vector<std::int64_t> costs;
  const bool found =
      reservations.Take(id, now, [&](const Reserved& reserved) { costs.push_back(reserved.cost); });
  if (!found) return std::nullopt;
  return costs;
}

TEST(Reservations, HandBackEachChargeInTheOrderItWasAdded) {
  Reservations reservations(4);
  const ReservationId id = reservations.Open(kLater, kOpenedAt);
  ASSERT_NE(id, ReservationId::kNone);
  reservations.Add(id, Charged(5));
  reservations.Add(id, Charged(6));
  EXPECT_EQ(Settle(reservations, id), (std::vector<std::int64_t>{5, 6}));
}

TEST(Reservations, AreSettledOnce) {
  Reservations reservations(4);
  const ReservationId id = reservations.Open(kLater, kOpenedAt);
  EXPECT_TRUE(Settle(reservations, id));
  EXPECT_FALSE(Settle(reservations, id));
}

TEST(Reservations, MayHoldNoCharge) {
  Reservations reservations(4);
  EXPECT_EQ(Settle(reservations, reservations.Open(kLater, kOpenedAt)),
            std::vector<std::int64_t>{});
}

TEST(Reservations, EndAtTheirTimeAndNotBefore) {
  Reservations reservations(4);
  const ReservationId lasting = reservations.Open(kLater, kOpenedAt);
  const ReservationId ended = reservations.Open(kLater, kOpenedAt);
  EXPECT_TRUE(Settle(reservations, lasting, kLater - Ticks(1)));
  EXPECT_FALSE(Settle(reservations, ended, kLater));
  EXPECT_EQ(reservations.size(), 0U);
}

TEST(Reservations, DoNotKnowIdsTheyNeverGave) {
  Reservations reservations(4);
  const auto id = static_cast<std::uint64_t>(reservations.Open(kLater, kOpenedAt));
  EXPECT_FALSE(Settle(reservations, ReservationId::kNone));
  EXPECT_FALSE(Settle(reservations, ReservationId{id + 1}));
  EXPECT_FALSE(Settle(reservations, ReservationId{id + (std::uint64_t{1} << 32)}));
  EXPECT_FALSE(Settle(reservations, ReservationId{~std::uint64_t{0}}));
  EXPECT_EQ(reservations.size(), 1U);
}

TEST(Reservations, RefuseMoreThanTheyHaveRoomFor) {
  Reservations reservations(2);
  EXPECT_NE(reservations.Open(kLater, kOpenedAt), ReservationId::kNone);
  const ReservationId second = reservations.Open(kLater, kOpenedAt);
  EXPECT_EQ(reservations.Open(kLater, kOpenedAt), ReservationId::kNone);
  EXPECT_EQ(reservations.size(), 2U);
  ASSERT_TRUE(Settle(reservations, second));
  EXPECT_NE(reservations.Open(kLater, kOpenedAt), ReservationId::kNone);
}

TEST(Reservations, WithoutRoomRefuseAll) {
  Reservations reservations(0);
  EXPECT_EQ(reservations.Open(kLater, kOpenedAt), ReservationId::kNone);
  EXPECT_FALSE(Settle(reservations, ReservationId{1}));
}

TEST(Reservations, MakeRoomByForgettingThoseWhoseTimeIsOver) {
  constexpr std::size_t kCapacity = 200;
  Reservations reservations(kCapacity);
  std::vector<ReservationId> dead;
  for (std::size_t i = 0; i < kCapacity; ++i) {
    dead.push_back(reservations.Open(kLater, kOpenedAt));
    reservations.Add(dead.back(), Charged(1));
  }
  ASSERT_EQ(reservations.Open(kLater, kOpenedAt), ReservationId::kNone);
  for (std::size_t i = 0; i < kCapacity; ++i) {
    const ReservationId id = reservations.Open(kLater + kLater, kLater);
    ASSERT_NE(id, ReservationId::kNone) << i;
    EXPECT_EQ(Settle(reservations, id, kLater), std::vector<std::int64_t>{});
  }
  for (const ReservationId id : dead) EXPECT_FALSE(Settle(reservations, id, kLater));
}

// One that is over may be anywhere among those that are not.
TEST(Reservations, MakeRoomWhereverTheOneWhoseTimeIsOverIs) {
  constexpr std::size_t kCapacity = 500;
  for (const std::size_t over : {std::size_t{0}, std::size_t{250}, kCapacity - 1}) {
    Reservations reservations(kCapacity);
    for (std::size_t i = 0; i < kCapacity; ++i) {
      reservations.Open(i == over ? kLater : kLater + kLater, kOpenedAt);
    }
    EXPECT_EQ(reservations.Open(kLater + kLater, kLater - Ticks(1)), ReservationId::kNone);
    EXPECT_NE(reservations.Open(kLater + kLater, kLater), ReservationId::kNone);
    EXPECT_EQ(reservations.Open(kLater + kLater, kLater), ReservationId::kNone);
  }
}

TEST(Reservations, FindTheNextThatEndsAfterTheEarliestWasSettled) {
  Reservations reservations(3);
  const ReservationId earliest = reservations.Open(kLater, kOpenedAt);
  reservations.Open(kLater + Ticks(20), kOpenedAt);
  reservations.Open(kLater + Ticks(10), kOpenedAt);
  ASSERT_TRUE(Settle(reservations, earliest));
  reservations.Open(kLater + Ticks(30), kOpenedAt);
  for (const int passed : {0, 9}) {
    EXPECT_EQ(reservations.Open(kLater + kLater, kLater + Ticks(passed)), ReservationId::kNone);
  }
  for (const int passed : {10, 20, 30}) {
    const Ticks now = kLater + Ticks(passed);
    EXPECT_NE(reservations.Open(kLater + kLater, now), ReservationId::kNone) << passed;
    EXPECT_EQ(reservations.Open(kLater + kLater, now), ReservationId::kNone) << passed;
  }
}

// Of 200 ids of one record any two would be close to each other if they could be counted up to.
TEST(Reservations, HaveIdsThatTellNothingOfTheNext) {
  Reservations reservations(1);
  Reservations others(1);
  std::set<std::uint64_t> random_parts;
  for (int i = 0; i < 100; ++i) {
    for (Reservations* each : {&reservations, &others}) {
      const ReservationId id = each->Open(kLater, kOpenedAt);
      ASSERT_NE(id, ReservationId::kNone);
      random_parts.insert(static_cast<std::uint64_t>(id) >> Reservations::kNumberBits);
      ASSERT_TRUE(Settle(*each, id));
    }
  }
  ASSERT_EQ(random_parts.size(), 200U);
  // All of the 39 bits are used, and the top bit is not: some lie in each eighth of the range.
  std::set<std::uint64_t> eighths;
  for (const std::uint64_t part : random_parts) eighths.insert(part >> 36);
  EXPECT_EQ(eighths.size(), 8U);
}

TEST(Reservations, NeverTakeAnOldIdForANewOne) {
  Reservations reservations(1);
  std::set<ReservationId> seen;
  for (int i = 0; i < 100; ++i) {
    const ReservationId id = reservations.Open(kLater, kOpenedAt);
    EXPECT_TRUE(seen.insert(id).second);
    for (const ReservationId old : seen) {
      if (old != id) {
        EXPECT_FALSE(Settle(reservations, old));
      }
    }
    EXPECT_TRUE(Settle(reservations, id));
  }
}

TEST(Reservations, IgnoreAChargeForOneThatIsSettled) {
  Reservations reservations(1);
  const ReservationId id = reservations.Open(kLater, kOpenedAt);
  ASSERT_TRUE(Settle(reservations, id));
  reservations.Add(id, Charged(5));
  EXPECT_EQ(Settle(reservations, reservations.Open(kLater, kOpenedAt)),
            std::vector<std::int64_t>{});
}

TEST(Reservations, AreSettledByExactlyOneOfManyThreads) {
  constexpr int kRounds = 500;
  Reservations reservations(8);
  for (int round = 0; round < kRounds; ++round) {
    const ReservationId id = reservations.Open(kLater, kOpenedAt);
    reservations.Add(id, Charged(1));
    std::atomic<int> settled{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
          if (Settle(reservations, id)) ++settled;
        });
      }
    }
    EXPECT_EQ(settled, 1);
  }
  EXPECT_EQ(reservations.size(), 0U);
}

TEST(Reservations, OfManyThreadsStayApart) {
  Reservations reservations(16);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&reservations, i] {
      for (int n = 0; n < 2'000; ++n) {
        const std::int64_t mark = i * 10'000 + n + 1;
        const ReservationId id = reservations.Open(kLater, kOpenedAt);
        ASSERT_NE(id, ReservationId::kNone);
        reservations.Add(id, Charged(mark));
        EXPECT_EQ(Settle(reservations, id), std::vector<std::int64_t>{mark});
      }
    });
  }
  threads.clear();
  EXPECT_EQ(reservations.size(), 0U);
}

}  // namespace
}  // namespace weir
