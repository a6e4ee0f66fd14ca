#include "policy/overrides.h"

#include <string>
#include <unordered_map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

std::string CustomerSubject(std::size_t i) { return "user=customer-" + std::to_string(i); }

OverrideTable::Entry EntryOf(std::size_t i) {
  return {.limit = static_cast<std::uint32_t>(i % 7), .row = static_cast<std::uint32_t>(i)};
}

void ExpectHolds(const OverrideTable& table, std::size_t count) {
  ASSERT_EQ(table.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const OverrideTable::Entry* entry = table.Find(CustomerSubject(i));
    ASSERT_NE(entry, nullptr) << i;
    EXPECT_EQ(entry->row, i);
    EXPECT_EQ(entry->limit, i % 7);
    ASSERT_EQ(table.Find(CustomerSubject(count + i)), nullptr) << count + i;
  }
}

TEST(OverrideTable, FindsNothingWhileItIsEmpty) {
  EXPECT_EQ(OverrideTable().Find("user=acme"), nullptr);
  EXPECT_EQ(OverrideTable(1000).Find("user=acme"), nullptr);
  EXPECT_EQ(OverrideTable().bytes(), 0u);
}

TEST(OverrideTable, FindsWhatWasAdded) {
  OverrideTable table;
  EXPECT_TRUE(table.Add("user=acme", {.limit = 3, .row = 17}));
  ASSERT_NE(table.Find("user=acme"), nullptr);
  EXPECT_EQ(table.Find("user=acme")->limit, 3u);
  EXPECT_EQ(table.Find("user=acme")->row, 17u);
  EXPECT_EQ(table.Find("user=acm"), nullptr);
  EXPECT_EQ(table.Find(""), nullptr);
}

TEST(OverrideTable, KeepsTheFirstOfTwoEqualKeys) {
  OverrideTable table;
  EXPECT_TRUE(table.Add("user=acme", {.limit = 1, .row = 2}));
  EXPECT_FALSE(table.Add("user=acme", {.limit = 3, .row = 4}));
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.Find("user=acme")->limit, 1u);
  EXPECT_EQ(table.Find("user=acme")->row, 2u);
}

TEST(OverrideTable, KeepsEveryKeyAtEverySizeWhileItGrows) {
  OverrideTable table;
  for (std::size_t i = 0; i < 600; ++i) {
    ASSERT_TRUE(table.Add(CustomerSubject(i), EntryOf(i)));
    ExpectHolds(table, i + 1);
  }
}

TEST(OverrideTable, HoldsMoreThanWasExpected) {
  OverrideTable table(10);
  for (std::size_t i = 0; i < 5000; ++i) ASSERT_TRUE(table.Add(CustomerSubject(i), EntryOf(i)));
  ExpectHolds(table, 5000);
}

TEST(OverrideTable, TakesAtMost24BytesForEachOfAMillionKeysHoweverItGrew) {
  constexpr std::size_t kKeys = 1'000'000;
  OverrideTable grown;
  OverrideTable sized(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) {
    const std::string subject = CustomerSubject(i);
    ASSERT_TRUE(grown.Add(subject, EntryOf(i)));
    ASSERT_TRUE(sized.Add(subject, EntryOf(i)));
    if (i < 10'000) continue;
    ASSERT_LE(grown.bytes(), 24 * (i + 1));
  }
  EXPECT_LE(sized.bytes(), 19 * kKeys);
  EXPECT_FALSE(grown.Add(CustomerSubject(kKeys / 2), EntryOf(0)));
  ExpectHolds(grown, kKeys);
}

RC_GTEST_PROP(OverrideTable, DoesAsAMapDoes, (const std::vector<std::string>& subjects)) {
  OverrideTable table;
  std::unordered_map<std::string, std::uint32_t> map;
  std::uint32_t row = 0;
  for (const std::string& subject : subjects) {
    ++row;
    RC_ASSERT(table.Add(subject, {.limit = 0, .row = row}) == map.emplace(subject, row).second);
  }
  RC_ASSERT(table.size() == map.size());
  for (const auto& [subject, expected] : map) RC_ASSERT(table.Find(subject)->row == expected);
}

}  // namespace
}  // namespace weir
