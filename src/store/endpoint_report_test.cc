#include "store/endpoint_report.h"

#include <set>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(StoreFault, HasANameOfItsOwnForEveryKind) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kStoreFaults; ++i) {
    const std::string_view name = NameOf(static_cast<StoreFault>(i));
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
    names.insert(name);
  }
  EXPECT_EQ(names.size(), kStoreFaults);
}

TEST(StoreFault, IsCalledAsTheDocumentsHaveIt) {
  EXPECT_EQ(NameOf(StoreFault::kTimeout), "timeout");
  EXPECT_EQ(NameOf(StoreFault::kOverload), "overload");
  EXPECT_EQ(NameOf(StoreFault::kBreaker), "breaker");
  EXPECT_EQ(NameOf(StoreFault::kNoMemory), "no_memory");
  EXPECT_EQ(NameOf(StoreFault::kClusterDown), "cluster_down");
  EXPECT_EQ(NameOf(StoreFault::kCorrupt), "corrupt");
  EXPECT_EQ(NameOf(StoreFault::kOther), "other");
}

}  // namespace
}  // namespace weir
