#include "store/memory/cap_shares.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(CapShares, AreAllThereIsWhereItFits) {
  std::vector<PartUse> parts{{.used = 60, .needed = 10}, {.used = 30, .needed = 30}};
  ShareOut(100, 5, parts);
  EXPECT_EQ(parts[0].kept, 60U);
  EXPECT_EQ(parts[1].kept, 30U);
}

TEST(CapShares, AreTakenFirstFromWhatNobodyNeeds) {
  std::vector<PartUse> parts{{.used = 60, .needed = 20}, {.used = 50, .needed = 50}};
  ShareOut(90, 5, parts);
  EXPECT_EQ(parts[0].kept, 40U);
  EXPECT_EQ(parts[1].kept, 50U);
}

TEST(CapShares, AreTakenInProportionFromWhatIsNeeded) {
  std::vector<PartUse> parts{{.used = 100, .needed = 90}, {.used = 50, .needed = 50}};
  ShareOut(80, 10, parts);
  // 60 are left of what is above the assured: 80 and 40 were needed.
  EXPECT_EQ(parts[0].kept, 50U);
  EXPECT_EQ(parts[1].kept, 30U);
}

TEST(CapShares, LeaveRoomForWhatOthersAreAssured) {
  std::vector<PartUse> parts{{.used = 100, .needed = 100}, {.used = 0}, {.used = 8, .needed = 8}};
  ShareOut(60, 10, parts);
  EXPECT_EQ(parts[0].kept, 40U);
  EXPECT_EQ(parts[1].kept, 0U);
  EXPECT_EQ(parts[2].kept, 8U);
}

TEST(CapShares, AreNoLessThanAPartCanDoWith) {
  std::vector<PartUse> parts{{.used = 100, .needed = 100}, {.used = 30, .needed = 1, .least = 30}};
  ShareOut(50, 2, parts);
  EXPECT_EQ(parts[0].kept, 20U);
  EXPECT_EQ(parts[1].kept, 30U);
  ShareOut(10, 2, parts);  // Cannot be; everybody is left with the least.
  EXPECT_EQ(parts[0].kept, 2U);
  EXPECT_EQ(parts[1].kept, 30U);
}

TEST(CapShares, FitWhateverTheStoreHolds) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random);
  };
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t cap = 1'000 + pick(std::size_t{1} << (10 + pick(30)));
    const std::size_t assured = cap / 32;
    std::vector<PartUse> parts(6);
    std::size_t needed = 0;
    for (PartUse& part : parts) {
      part.used = pick(2 * cap);
      part.needed = pick(part.used);
      part.least = pick(cap / 12);
      needed += std::max({part.needed, part.least, assured});
    }
    ShareOut(cap, assured, parts);
    std::size_t kept = 0;
    for (const PartUse& part : parts) {
      EXPECT_LE(part.kept, part.used);
      kept += std::max(part.kept, assured);
      if (needed <= cap) {
        EXPECT_GE(part.kept, part.needed);
      }
    }
    ASSERT_LE(kept, cap) << "run " << i;
  }
}

}  // namespace
}  // namespace weir
