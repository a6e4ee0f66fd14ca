#include "lab/replay/key_tally.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace weir::lab {
namespace {

TEST(KeyTally, CountsEveryKeyExactly) {
  KeyTally tally;
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> keys(20'000);
  std::ranges::generate(keys, random);
  keys[0] = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t times = 0; times < 1 + i % 5; ++times) tally.CountRequest(keys[i]);
  }
  EXPECT_EQ(tally.keys(), keys.size());
  const KeyTally::Denial denial = tally.CountDenial(keys[4]);
  EXPECT_TRUE(denial.is_first);
  EXPECT_TRUE(denial.wants_name);
  tally.Name(keys[4], 2, "ip=a");
  EXPECT_FALSE(tally.CountDenial(keys[4]).is_first);
  EXPECT_FALSE(tally.CountDenial(keys[4]).wants_name);
  const std::vector<TalliedKey> top = tally.Top(10);
  ASSERT_EQ(top.size(), 1U);
  EXPECT_EQ(top[0].key, "ip=a");
  EXPECT_EQ(top[0].rule, 2U);
  EXPECT_EQ(top[0].requests, 5U);
  EXPECT_EQ(top[0].denied, 3U);
}

// Far more keys are denied than it keeps the texts of, and the worst come late.
TEST(KeyTally, NamesThoseDeniedMostAlthoughItForgetsTexts) {
  KeyTally tally;
  std::mt19937_64 random(5);
  std::map<std::uint64_t, std::uint64_t> denials;
  for (int i = 0; i < 300'000; ++i) {
    const std::uint64_t rank = random() % 60'000;
    const std::uint64_t key =
        (i > 200'000 && random() % 3 == 0 ? rank % 200 : rank) * 0x9e3779b97f4a7c15;
    ++denials[key];
    tally.CountRequest(key);
    if (tally.CountDenial(key).wants_name) tally.Name(key, 0, std::to_string(key));
  }
  std::vector<std::uint64_t> expected;
  for (const auto& [key, count] : denials) expected.push_back(count);
  std::ranges::sort(expected, std::greater());
  const std::vector<TalliedKey> top = tally.Top(KeyTally::kMostNamed);
  ASSERT_EQ(top.size(), KeyTally::kMostNamed);
  for (std::size_t i = 0; i < top.size(); ++i) {
    ASSERT_EQ(top[i].denied, expected[i]) << i;
    ASSERT_EQ(top[i].denied, denials[std::stoull(top[i].key)]);
  }
}

TEST(KeyTally, NamesSomebodyIfAllAreAlike) {
  KeyTally tally;
  for (std::uint64_t i = 1; i <= 50'000; ++i) {
    const std::uint64_t key = i * 0x9e3779b97f4a7c15;
    if (tally.CountDenial(key).wants_name) tally.Name(key, 0, std::to_string(i));
  }
  EXPECT_EQ(tally.Top(10).size(), 10U);
}

}  // namespace
}  // namespace weir::lab
