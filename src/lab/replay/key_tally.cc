#include "lab/replay/key_tally.h"

#include <algorithm>
#include <tuple>

namespace weir::lab {
namespace {

// Slots that are empty have the key 0.
std::uint64_t NotZero(std::uint64_t key) noexcept { return key == 0 ? 1 : key; }

}  // namespace

KeyTally::KeyTally() : slots_(std::size_t{1} << kFirstBits) {}

KeyTally::Slot& KeyTally::SlotOf(std::uint64_t key) {
  key = NotZero(key);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = Home(key);; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.key == key) return slot;
    if (slot.key != 0) continue;
    if (used_ * 3 > slots_.size() * 2) {
      Grow();
      return SlotOf(key);
    }
    ++used_;
    slot.key = key;
    return slot;
  }
}

const KeyTally::Slot& KeyTally::Find(std::uint64_t key) const {
  key = NotZero(key);
  std::size_t at = Home(key);
  while (slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void KeyTally::Grow() {
  std::vector<Slot> before(slots_.size() * 2);
  before.swap(slots_);
  --shift_;
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.key == 0) continue;
    std::size_t at = Home(slot.key);
    while (slots_[at].key != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

KeyTally::Denial KeyTally::CountDenial(std::uint64_t key) {
  Slot& slot = SlotOf(key);
  ++slot.denied;
  return {.is_first = slot.denied == 1,
          .wants_name = slot.denied > floor_ && !texts_.contains(key)};
}

void KeyTally::Name(std::uint64_t key, std::uint32_t rule, std::string text) {
  texts_.insert_or_assign(key, Text{.rule = rule, .text = std::move(text)});
  if (texts_.size() > kMostTexts) ForgetTexts();
}

// Keeps the half that was denied most. Somebody with no more denials than the best of the others
// has all of that half before him, or beside him.
void KeyTally::ForgetTexts() {
  using Named = std::pair<const std::uint64_t, Text>;
  std::vector<const Named*> all;
  all.reserve(texts_.size());
  for (const Named& each : texts_) all.push_back(&each);
  // The same for the same log, although the numbers of keys are others in every run.
  std::ranges::sort(all, {}, [&](const Named* each) {
    return std::tuple(~Find(each->first).denied, each->second.rule,
                      std::string_view(each->second.text));
  });
  std::vector<std::uint64_t> forgotten;
  for (std::size_t i = kMostTexts / 2; i < all.size(); ++i) forgotten.push_back(all[i]->first);
  floor_ = std::max(floor_, Find(forgotten.front()).denied);
  for (const std::uint64_t key : forgotten) texts_.erase(key);
}

std::vector<TalliedKey> KeyTally::Top(std::size_t most) const {
  std::vector<TalliedKey> top;
  for (const auto& [key, text] : texts_) {
    const Slot& slot = Find(key);
    top.push_back(
        {.rule = text.rule, .key = text.text, .requests = slot.requests, .denied = slot.denied});
  }
  std::ranges::sort(top, {}, [](const TalliedKey& key) {
    return std::tuple(~key.denied, key.rule, std::string_view(key.key));
  });
  if (top.size() > most) top.resize(most);
  return top;
}

}  // namespace weir::lab
