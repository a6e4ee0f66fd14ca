#include "store/redis/fixed_servers.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/redis/slots.h"

namespace weir::redis {
namespace {

std::vector<std::string> OwnersByName(const std::vector<std::string>& names) {
  std::vector<std::string> owners;
  for (const std::uint16_t owner : DivideSlots(names)) owners.push_back(names[owner]);
  return owners;
}

TEST(FixedServers, DivideSlotsWhateverTheirOrder) {
  std::vector<std::string> names = {"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"};
  const std::vector<std::string> before = OwnersByName(names);
  while (std::ranges::next_permutation(names).found) EXPECT_EQ(OwnersByName(names), before);
}

TEST(FixedServers, HaveAboutAsManySlotsEach) {
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back("redis-" + std::to_string(i) + ":6379");
  const std::vector<std::string> owners = OwnersByName(names);
  for (const std::string& name : names) {
    const auto slots = std::ranges::count(owners, name);
    EXPECT_GT(slots, kSlots / 5 * 9 / 10) << name;
    EXPECT_LT(slots, kSlots / 5 * 11 / 10) << name;
  }
}

TEST(FixedServers, MoveOnlyTheSlotsOfTheOneThatIsTakenAway) {
  const std::vector<std::string> names = {"a:1", "b:1", "c:1", "d:1"};
  const std::vector<std::string> before = OwnersByName(names);
  const std::vector<std::string> after = OwnersByName({"a:1", "c:1", "d:1"});
  for (std::size_t slot = 0; slot < before.size(); ++slot) {
    if (before[slot] == "b:1") continue;
    EXPECT_EQ(after[slot], before[slot]);
  }
}

}  // namespace
}  // namespace weir::redis
