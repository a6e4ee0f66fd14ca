// threads
#include "engine/top_denied.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/mix.h"
#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr SteadyTime kStart{hours(1)};

std::string KeyOf(std::uint64_t number) { return "user=" + std::to_string(number); }

DeniedCharge Charge(std::uint64_t number, const std::string& text) {
  return {.hash = Mix(number + 1), .rule = "rule", .key = text};
}

// Some keys that come often among many that come once: as an attack looks.
std::vector<std::uint64_t> Denials() {
  const auto often = *rc::gen::inRange<std::uint64_t>(1, 40);
  const auto seldom = *rc::gen::inRange<std::uint64_t>(1, 5'000);
  const auto share = *rc::gen::inRange<std::uint64_t>(0, 101);
  const auto count = *rc::gen::inRange<std::size_t>(0, 6'000);
  std::uint64_t random = *rc::gen::arbitrary<std::uint64_t>();
  std::vector<std::uint64_t> denials;
  for (std::size_t i = 0; i < count; ++i) {
    random = Mix(random + 1);
    denials.push_back(random % 100 < share ? (random >> 8) % often : 100 + (random >> 8) % seldom);
  }
  return denials;
}

RC_GTEST_PROP(DeniedCell, HasEveryFrequentKeyAndCountsWithinItsError, ()) {
  DeniedCell cell(kStart);
  std::map<std::uint64_t, std::uint64_t> exact;
  const std::vector<std::uint64_t> denials = Denials();
  for (const std::uint64_t number : denials) {
    const std::string text = KeyOf(number);
    cell.Add(Charge(number, text), kStart);
    ++exact[number];
  }
  std::map<std::string, const DeniedCell::Entry*> found;
  for (const DeniedCell::Entry& entry : cell.entries()) {
    RC_ASSERT(found.emplace(entry.key_text(), &entry).second);
  }
  for (const auto& [number, count] : exact) {
    const auto entry = found.find(KeyOf(number));
    if (count > denials.size() / DeniedCell::kKeys) RC_ASSERT(entry != found.end());
    if (entry == found.end()) {
      RC_ASSERT(count <= cell.least());
    } else {
      RC_ASSERT(entry->second->count >= count);
      RC_ASSERT(entry->second->count - entry->second->error <= count);
    }
  }
}

RC_GTEST_PROP(DeniedCell, KeepsItsPromisesWhenCountsFade, ()) {
  DeniedCell cell(kStart);
  std::map<std::uint64_t, std::uint64_t> exact;
  SteadyTime now = kStart;
  for (const std::uint64_t number : Denials()) {
    if (number % 512 == 0) {
      now += minutes(1);
      for (auto& [key, count] : exact) count /= 2;
    }
    const std::string text = KeyOf(number);
    cell.Add(Charge(number, text), now);
    ++exact[number];
  }
  std::map<std::string, const DeniedCell::Entry*> found;
  for (const DeniedCell::Entry& entry : cell.entries()) found.emplace(entry.key_text(), &entry);
  for (const auto& [number, count] : exact) {
    const auto entry = found.find(KeyOf(number));
    if (entry == found.end()) {
      RC_ASSERT(count <= cell.least());
    } else {
      RC_ASSERT(entry->second->count >= count);
      RC_ASSERT(entry->second->count - entry->second->error <= count);
    }
  }
}

TEST(DenialSketch, SumsUpWhatThreadsSawAndShowsTheFirstFirst) {
  DenialSketch top(kStart);
  constexpr std::uint64_t kThreads = 12;
  constexpr std::uint64_t kNoise = 2'000;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < kNoise; ++i) {
          const std::string noise = KeyOf(1'000 + t * kNoise + i);
          top.Add(Charge(1'000 + t * kNoise + i, noise), kStart);
          const std::uint64_t often = i % 10 < 6 ? 1 : 2;
          const std::string text = KeyOf(often);
          top.Add(Charge(often, text), kStart);
        }
      });
    }
  }
  const std::vector<DeniedKey> keys = top.Read(3, kStart);
  ASSERT_EQ(keys.size(), 3U);
  const auto expect = [](const DeniedKey& key, const std::string& text, std::uint64_t count) {
    EXPECT_EQ(key.key, text);
    EXPECT_EQ(key.rule, "rule");
    EXPECT_GE(key.denials, count);
    EXPECT_LE(key.denials - key.error, count);
    EXPECT_LE(key.error, 2 * kThreads * kNoise / DeniedCell::kKeys);
  };
  expect(keys[0], "user=1", kThreads * kNoise * 6 / 10);
  expect(keys[1], "user=2", kThreads * kNoise * 4 / 10);
  EXPECT_LT(keys[2].denials, kThreads * kNoise / 10);
}

TEST(DenialSketch, IsExactAsLongAsThereAreFewKeys) {
  DenialSketch top(kStart);
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (std::uint64_t n = 0; n <= i; ++n) top.Add(Charge(i, KeyOf(i)), kStart);
  }
  const std::vector<DeniedKey> keys = top.Read(1'000, kStart);
  ASSERT_EQ(keys.size(), 100U);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(keys[i].key, KeyOf(99 - i));
    EXPECT_EQ(keys[i].denials, 100 - i);
    EXPECT_EQ(keys[i].error, 0U);
  }
  EXPECT_TRUE(top.Read(0, kStart).empty());
}

TEST(DenialSketch, HoldsKeysOfAnyLength) {
  DenialSketch top(kStart);
  top.Add({.hash = 1, .rule = "rule", .key = ""}, kStart);
  top.Add({.hash = 2, .rule = "rule", .key = std::string(500, 'x')}, kStart);
  const std::vector<DeniedKey> keys = top.Read(5, kStart);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].key, "");
  EXPECT_EQ(keys[1].key, std::string(kMostSubjectBytes, 'x'));
}

TEST(DenialSketch, FadesByHalfEveryMinute) {
  DenialSketch top(kStart);
  const std::string text = KeyOf(1);
  for (int i = 0; i < 100; ++i) top.Add(Charge(1, text), kStart + seconds(59));
  EXPECT_EQ(top.Read(1, kStart + seconds(59)).at(0).denials, 100U);
  EXPECT_EQ(top.Read(1, kStart + minutes(1)).at(0).denials, 50U);
  EXPECT_EQ(top.Read(1, kStart + minutes(3)).at(0).denials, 12U);
  EXPECT_EQ(top.Read(1, kStart + minutes(2)).at(0).denials, 12U);  // Set back.
  EXPECT_TRUE(top.Read(1, kStart + hours(5)).empty());
  for (const SteadyTime any : {SteadyTime::max(), SteadyTime::min(), SteadyTime::max()}) {
    EXPECT_TRUE(top.Read(1, any).empty());
  }
}

TEST(DenialSketch, OfAnEngineNamesRuleAndKeyOfWhatWasDeniedByRulesThatHaveASay) {
  EngineUnderTest under_test(R"(
rules:
  - { name: narrow, key: user, limit: 2/min }
  - { name: trial, key: user, limit: 1/min, mode: shadow }
  - { name: shut, match: { path: /old }, key: ip, limit: deny }
)");
  for (int i = 0; i < 5; ++i) under_test.Check({.user = "ann", .path = "/"});
  for (int i = 0; i < 3; ++i) under_test.Check({.user = "bob", .path = "/"});
  under_test.Peek({.user = "ann", .path = "/"});
  for (int i = 0; i < 2; ++i) under_test.Check({.ip = "192.0.2.1", .user = "c", .path = "/old"});
  const std::vector<DeniedKey> keys = under_test.engine.TopDenied(10);
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys[0].rule, "narrow");
  EXPECT_EQ(keys[0].key, "user=ann");
  EXPECT_EQ(keys[0].denials, 3U);
  EXPECT_EQ(keys[1].rule, "shut");
  EXPECT_EQ(keys[1].key, "ip=192.0.2.1");
  EXPECT_EQ(keys[1].denials, 2U);
  EXPECT_EQ(keys[2].key, "user=bob");
}

}  // namespace
}  // namespace weir
