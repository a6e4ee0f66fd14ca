// threads
#include "store/memory/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max();

bool AllZero(const Pages& pages, std::size_t from, std::size_t to) {
  return std::all_of(pages.data() + from, pages.data() + to,
                     [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(ByteBudget, HandsOutExactlyItsCap) {
  ByteBudget budget(100);
  EXPECT_TRUE(budget.TryTake(60));
  EXPECT_TRUE(budget.TryTake(40));
  EXPECT_FALSE(budget.TryTake(1));
  EXPECT_TRUE(budget.TryTake(0));
  EXPECT_EQ(budget.used(), 100U);
  EXPECT_EQ(budget.left(), 0U);
}

TEST(ByteBudget, TakesNothingWhenItRefuses) {
  ByteBudget budget(100);
  EXPECT_FALSE(budget.TryTake(101));
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_TRUE(budget.TryTake(100));
}

TEST(ByteBudget, LeavesTheSpareToOthers) {
  ByteBudget budget(100);
  EXPECT_FALSE(budget.TryTake(81, 20));
  EXPECT_TRUE(budget.TryTake(80, 20));
  EXPECT_FALSE(budget.TryTake(1, 20));
  EXPECT_TRUE(budget.TryTake(20));
}

TEST(ByteBudget, RefusesSizesWhoseSumWouldOverflow) {
  ByteBudget budget(100);
  EXPECT_FALSE(budget.TryTake(kHuge));
  EXPECT_FALSE(budget.TryTake(1, kHuge));
  EXPECT_FALSE(budget.TryTake(kHuge, kHuge));
  EXPECT_EQ(budget.used(), 0U);
}

TEST(ByteBudget, HandsOutAgainWhatWasGivenBack) {
  ByteBudget budget(100);
  ASSERT_TRUE(budget.TryTake(100));
  budget.GiveBack(30);
  EXPECT_EQ(budget.left(), 30U);
  EXPECT_FALSE(budget.TryTake(31));
  EXPECT_TRUE(budget.TryTake(30));
}

TEST(ByteBudget, OfAPartIsAssuredOfItsShareHoweverGreedyTheOthersAre) {
  ByteBudget whole(100);
  ByteBudget greedy(whole, 10);
  ByteBudget modest(whole, 10);
  std::size_t taken = 0;
  while (greedy.TryTake(1)) ++taken;
  EXPECT_EQ(taken, 90U);
  EXPECT_EQ(greedy.left(), 0U);
  EXPECT_EQ(modest.left(), 10U);
  EXPECT_TRUE(modest.TryTake(10));
  EXPECT_FALSE(modest.TryTake(1));
  EXPECT_EQ(greedy.used() + modest.used(), 100U);
}

TEST(ByteBudget, OfAPartGivesBackToTheOthersOnlyWhatIsAboveItsShare) {
  ByteBudget whole(100);
  ByteBudget one(whole, 20);
  ByteBudget other(whole, 20);
  ASSERT_TRUE(one.TryTake(80));
  EXPECT_FALSE(other.TryTake(21));
  one.GiveBack(70);
  EXPECT_FALSE(other.TryTake(81));
  EXPECT_TRUE(other.TryTake(80));
  EXPECT_EQ(one.left(), 10U);
}

TEST(ByteBudget, OfAPartRefusesWhatTheWholeDoesNotHave) {
  ByteBudget whole(100);
  ByteBudget part(whole, 40);
  EXPECT_FALSE(part.TryTake(101));
  EXPECT_FALSE(part.TryTake(kHuge));
  EXPECT_FALSE(part.TryTake(100, 1));
  EXPECT_EQ(part.used(), 0U);
  EXPECT_TRUE(part.TryTake(40, 70));  // What is its own costs the others nothing.
  EXPECT_TRUE(part.TryTake(60));
  EXPECT_EQ(ByteBudget(whole, 1).left(), 0U);
}

TEST(ByteBudget, HandsOutMoreOnceItsCapIsRaised) {
  ByteBudget whole(100);
  ByteBudget part(whole, 10);
  ASSERT_TRUE(part.TryTake(100));
  whole.SetCap(150);
  EXPECT_EQ(part.cap(), 150U);
  EXPECT_EQ(part.left(), 50U);
  EXPECT_TRUE(part.TryTake(50));
  EXPECT_FALSE(part.TryTake(1));
}

TEST(ByteBudget, HandsOutNothingWhileMoreIsUsedThanItsCap) {
  ByteBudget whole(100);
  ByteBudget part(whole, 0);
  ASSERT_TRUE(part.TryTake(90));
  whole.SetCap(50);
  EXPECT_EQ(whole.left(), 0U);
  EXPECT_EQ(part.left(), 0U);
  EXPECT_FALSE(part.TryTake(1));
  part.GiveBack(39);
  EXPECT_FALSE(part.TryTake(1));
  part.GiveBack(2);
  EXPECT_TRUE(part.TryTake(1));
  EXPECT_FALSE(part.TryTake(1));
}

TEST(ByteBudget, OfAPartMayBeAssuredOfMoreOrLess) {
  ByteBudget whole(100);
  ByteBudget one(whole, 20);
  ByteBudget other(whole, 20);
  ASSERT_TRUE(one.TryTake(30));
  EXPECT_EQ(whole.used(), 50U);
  EXPECT_TRUE(one.Assure(10));  // It has more anyway.
  EXPECT_EQ(whole.used(), 50U);
  EXPECT_TRUE(one.Assure(40));
  EXPECT_EQ(whole.used(), 60U);
  EXPECT_FALSE(other.TryTake(61));
  EXPECT_TRUE(one.Assure(25));
  EXPECT_TRUE(other.Assure(5));
  EXPECT_EQ(whole.used(), 35U);
  one.GiveBack(30);
  EXPECT_EQ(whole.used(), 30U);
  EXPECT_EQ(one.left(), 25U + 70U);
}

TEST(ByteBudget, OfAPartIsNotAssuredOfWhatOthersHaveTaken) {
  ByteBudget whole(100);
  ByteBudget one(whole, 20);
  ByteBudget other(whole, 20);
  ASSERT_TRUE(other.TryTake(70));
  EXPECT_FALSE(one.Assure(31));
  EXPECT_TRUE(one.TryTake(20));
  EXPECT_TRUE(one.Assure(30));
  whole.SetCap(50);
  EXPECT_FALSE(one.Assure(31));
  EXPECT_TRUE(one.Assure(0));
  EXPECT_EQ(whole.used(), 90U);
}

TEST(ByteBudget, StaysWithinItsCapWhateverIsChangedMeanwhile) {
  ByteBudget whole(1'000);
  ByteBudget one(whole, 100);
  ByteBudget other(whole, 100);
  std::atomic<bool> done{false};
  std::vector<std::jthread> threads;
  for (ByteBudget* part : {&one, &other, &one, &other}) {
    threads.emplace_back([&, part] {
      while (!done) {
        if (!part->TryTake(70)) continue;
        EXPECT_LE(part->used(), 1'000U);
        part->GiveBack(70);
      }
    });
  }
  for (int i = 0; i < 2'000; ++i) {
    const std::size_t cap = i % 2 == 0 ? 500 : 1'000;
    if (cap == 1'000) whole.SetCap(cap);
    one.Assure(cap / 10);
    other.Assure(cap / 10);
    whole.SetCap(cap);
  }
  done = true;
  threads.clear();
  EXPECT_EQ(one.used(), 0U);
  EXPECT_EQ(other.used(), 0U);
  EXPECT_EQ(whole.used(), 200U);
}

TEST(ByteBudget, IsNeverOverdrawnByManyThreads) {
  constexpr std::size_t kCap = 1'000;
  ByteBudget budget(kCap);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5'000; ++n) {
        if (!budget.TryTake(300)) continue;
        EXPECT_LE(budget.used(), kCap);
        budget.GiveBack(300);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(Pages, AreZeroAtFirst) {
  const Pages pages(3 * kPage);
  ASSERT_NE(pages.data(), nullptr);
  EXPECT_EQ(pages.size(), 3 * kPage);
  EXPECT_TRUE(AllZero(pages, 0, pages.size()));
}

TEST(Pages, OfNoSizeHoldNothing) {
  const Pages pages;
  EXPECT_EQ(pages.data(), nullptr);
  EXPECT_EQ(pages.size(), 0U);
}

TEST(Pages, SayNullWhenTheSystemRefuses) {
  const Pages pages(kHuge / 2);
  EXPECT_EQ(pages.data(), nullptr);
  EXPECT_EQ(pages.size(), 0U);
}

TEST(Pages, ReadAsZeroOnceDiscarded) {
  Pages pages(4 * kPage);
  std::fill_n(pages.data(), pages.size(), std::byte{7});
  pages.DiscardBelow(pages.size());
  EXPECT_TRUE(AllZero(pages, 0, pages.size()));
}

TEST(Pages, KeepAPageUntilAllOfItIsDiscarded) {
  Pages pages(4 * kPage);
  std::fill_n(pages.data(), pages.size(), std::byte{7});
  pages.DiscardBelow(kPage - 1);
  EXPECT_EQ(pages.discarded(), 0U);
  EXPECT_EQ(pages.data()[0], std::byte{7});
  pages.DiscardBelow(2 * kPage + 1);
  pages.DiscardBelow(kPage);
  EXPECT_TRUE(AllZero(pages, 0, 2 * kPage));
  EXPECT_EQ(pages.data()[2 * kPage], std::byte{7});
  pages.DiscardBelow(3 * kPage + 5);
  EXPECT_TRUE(AllZero(pages, 0, 3 * kPage));
  EXPECT_EQ(pages.data()[3 * kPage], std::byte{7});
}

TEST(Pages, KeepNotEvenAPartOfTheLastPage) {
  Pages pages(kPage + 100);
  std::fill_n(pages.data(), pages.size(), std::byte{7});
  pages.DiscardBelow(kPage + 99);
  EXPECT_EQ(pages.data()[kPage], std::byte{7});
  pages.DiscardBelow(pages.size());
  EXPECT_TRUE(AllZero(pages, 0, pages.size()));
}

TEST(Pages, MayBeUsedAgainOnceAllIsDiscarded) {
  Pages pages(3 * kPage + 5);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(AllZero(pages, 0, pages.size()));
    std::fill_n(pages.data(), pages.size(), std::byte{7});
    pages.DiscardBelow(kPage);
    EXPECT_EQ(pages.data()[0], std::byte{0});
    EXPECT_EQ(pages.data()[kPage], std::byte{7});
    pages.DiscardBelow(pages.size());
    pages.StartAgain();
  }
}

TEST(Pages, AreDiscardedWholeOnlyAndWhereTheyWereMeant) {
  Pages pages(6 * kPage + 5);
  std::fill_n(pages.data(), pages.size(), std::byte{7});
  pages.DiscardBetween(kPage + 1, 4 * kPage - 1);
  EXPECT_EQ(pages.data()[2 * kPage - 1], std::byte{7});
  EXPECT_TRUE(AllZero(pages, 2 * kPage, 3 * kPage));
  EXPECT_EQ(pages.data()[3 * kPage], std::byte{7});
  pages.DiscardBetween(kPage + 1, 2 * kPage - 1);
  EXPECT_EQ(pages.data()[kPage], std::byte{7});
  pages.DiscardBetween(5 * kPage, pages.size());
  EXPECT_EQ(pages.data()[5 * kPage - 1], std::byte{7});
  EXPECT_TRUE(AllZero(pages, 5 * kPage, pages.size()));
  Pages().DiscardBetween(0, kPage);
}

TEST(Pages, ReadAsZeroOnceDiscardedThoughTheyAreLocked) {
  Pages pages(4 * kPage);
  if (mlock(pages.data(), pages.size()) != 0) GTEST_SKIP() << "this user may not lock memory";
  std::fill_n(pages.data(), pages.size(), std::byte{7});
  pages.DiscardBelow(2 * kPage);
  EXPECT_TRUE(AllZero(pages, 0, 2 * kPage));
  EXPECT_EQ(pages.data()[2 * kPage], std::byte{7});
}

TEST(Pages, MayBeLargeWhereThereAreMany) {
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  for (const std::size_t bytes : {kLarge, 8 * kLarge, 8 * kLarge + 1, 9 * kLarge + 5 * kPage + 3}) {
    Pages pages(bytes, PageSize::kLargeIfMany);
    ASSERT_NE(pages.data(), nullptr);
    EXPECT_EQ(pages.size(), bytes);
    std::fill_n(pages.data(), bytes, std::byte{7});
    const std::size_t kept = bytes - bytes / 4;
    pages.DiscardBelow(kept);
    EXPECT_LE(pages.discarded(), kept);
    EXPECT_GT(pages.discarded() + kLarge, kept);
    EXPECT_TRUE(AllZero(pages, 0, pages.discarded()));
    EXPECT_EQ(pages.data()[pages.discarded()], std::byte{7});
    pages.DiscardBelow(bytes);
    EXPECT_TRUE(AllZero(pages, 0, bytes));
  }
}

TEST(Pages, StayAtTheirAddressWhenMoved) {
  Pages from(kPage);
  std::byte* const data = from.data();
  data[5] = std::byte{9};
  Pages to(std::move(from));
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(to.data()[5], std::byte{9});

  Pages assigned(2 * kPage);
  assigned = std::move(to);
  EXPECT_EQ(assigned.data(), data);
  EXPECT_EQ(assigned.size(), kPage);
}

}  // namespace
}  // namespace weir
