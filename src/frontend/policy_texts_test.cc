#include "frontend/policy_texts.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

std::string Put(PolicyTexts& texts, const PolicyTexts::Item& item) {
  std::array<char, PolicyTexts::kMostBytes> room;
  RoomyText text(room.data());
  texts.Put(text, item);
  return {room.data(), text.end()};
}

TEST(PolicyTexts, TellTheQuotaAndTheWindow) {
  PolicyTexts texts;
  const std::string longest(PolicyTexts::kMostNameBytes, 'n');
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Put(texts, {.name = "a", .quota = 5, .window = std::chrono::milliseconds(59'001)}),
              "\"a\";q=5;w=60");
    EXPECT_EQ(Put(texts, {.name = "a", .quota = 0}), "\"a\";q=0");
    EXPECT_EQ(Put(texts, {.name = longest, .quota = 1'000'000'000'000'000, .window = kNever}),
              '"' + longest + "\";q=999999999999999;w=9223372037");
  }
}

// What was written before, in the same place or for the same rule, must not show.
RC_GTEST_PROP(PolicyTexts, AreThoseOfAnItemWhateverWasPutBefore, ()) {
  PolicyTexts texts;
  std::string name = "a";
  for (int i = 0; i < 200; ++i) {
    name = std::string(*rc::gen::inRange<std::size_t>(1, 4), *rc::gen::inRange('a', 'c'));
    const PolicyTexts::Item item{.name = name,
                                 .quota = *rc::gen::inRange(0, 3) * 64,
                                 .window = std::chrono::seconds(*rc::gen::inRange(-1, 2))};
    PolicyTexts fresh;
    RC_ASSERT(Put(texts, item) == Put(fresh, item));
  }
}

}  // namespace
}  // namespace weir
