// Nothing is allocated on the way of an ordinary group.
#include <gtest/gtest.h>

#include "base/counting_heap.h"
#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

TEST(GuardedStore, AllocatesNothingForGroupsOfKnownLimits) {
#ifdef WEIR_SANITIZER_HEAP
  GTEST_SKIP() << "the sanitizer has a heap of its own";
#endif
  GuardedUnderTest process;
  process.told.groups.reserve(10'000);
  const Limit bucket = LimitOf("1000000/h");
  const Limit window = LimitOf("1000000/h", {.algorithm = Algorithm::kSlidingWindow});
  const Charge charges[] = {process.ChargeFor("ann", bucket), process.ChargeFor("bob", window)};
  Decision decisions[2];
  Group group{.charges = charges, .decisions = decisions};
  for (const bool failing : {false, true}) {
    if (failing) process.behind.FailWith(ErrorCode::kDeadline, "late");
    process.Submit(group);  // Works out the shares; says that the store failed.
    const std::size_t before = allocations;
    for (int i = 0; i < 1'000; ++i) process.Submit(group);
    EXPECT_EQ(allocations, before) << (failing ? "failing" : "healthy");
    EXPECT_TRUE(group.decision.allowed);
    EXPECT_EQ(group.decision.source, failing ? Source::kFallback : Source::kStore);
  }
}

}  // namespace
}  // namespace weir
