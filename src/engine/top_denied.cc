#include "engine/top_denied.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <weir/engine.h>

#include "telemetry/thread_number.h"

namespace weir {

// Entries and their heap are written before they are read.
DeniedCell::DeniedCell(SteadyTime start) noexcept  // NOLINT
    : aged_at_(std::max(start, SteadyTime{})) {
  homes_.fill(kNone);
}

std::uint16_t DeniedCell::Find(std::uint64_t hash) const noexcept {
  std::uint16_t number = homes_[HomeOf(hash)];
  while (number != kNone && entries_[number].hash != hash) number = entries_[number].next;
  return number;
}

void DeniedCell::Unlink(std::uint16_t number) noexcept {
  std::uint16_t* link = &homes_[HomeOf(entries_[number].hash)];
  while (*link != number) link = &entries_[*link].next;
  *link = entries_[number].next;
}

void DeniedCell::Write(std::uint16_t number, const DeniedCharge& denied) noexcept {
  Entry& entry = entries_[number];
  entry.hash = denied.hash;
  entry.rule = denied.rule;
  const std::size_t size = std::min(denied.key.size(), entry.key.size());
  entry.key_size = static_cast<std::uint8_t>(size);
  if (size > 0) std::memcpy(entry.key.data(), denied.key.data(), size);
  entry.next = std::exchange(homes_[HomeOf(denied.hash)], number);
}

void DeniedCell::SiftUp(std::size_t place) noexcept {
  const std::uint16_t number = heap_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (entries_[heap_[parent]].count <= entries_[number].count) break;
    Put(place, heap_[parent]);
    place = parent;
  }
  Put(place, number);
}

void DeniedCell::SiftDown(std::size_t place) noexcept {
  const std::uint16_t number = heap_[place];
  const std::uint64_t count = entries_[number].count;
  for (std::size_t child = 2 * place + 1; child < size_; child = 2 * place + 1) {
    const auto count_at = [&](std::size_t at) { return entries_[heap_[at]].count; };
    if (child + 1 < size_ && count_at(child + 1) < count_at(child)) ++child;
    if (count_at(child) >= count) break;
    Put(place, heap_[child]);
    place = child;
  }
  Put(place, number);
}

void DeniedCell::Add(const DeniedCharge& denied, SteadyTime now) noexcept {
  Age(now);
  std::uint16_t number = Find(denied.hash);
  if (number == kNone && size_ < kKeys) {
    number = static_cast<std::uint16_t>(size_++);
    entries_[number].count = 0;
    entries_[number].error = 0;
    Write(number, denied);
    heap_[number] = number;
    SiftUp(number);
  } else if (number == kNone) {
    number = heap_[0];
    Unlink(number);
    entries_[number].error = entries_[number].count;
    Write(number, denied);
  }
  ++entries_[number].count;
  SiftDown(entries_[number].place);
}

void DeniedCell::Age(SteadyTime now) noexcept {
  // The clock may have been set back; and a time may come from anybody.
  aged_at_ = std::min(aged_at_, std::max(now, SteadyTime{}));
  const Duration since = now - aged_at_;
  if (since < kHalfLife) [[likely]]
    return;
  const auto times = since / kHalfLife;
  aged_at_ += times * kHalfLife;
  const int shift = static_cast<int>(std::min<Duration::rep>(times, 63));
  for (Entry& entry : std::span(entries_).first(size_)) {
    entry.count >>= shift;  // Keeps their order, so the heap stays one.
    // Rounded up: it must still cover what the count is too high by.
    const std::uint64_t rest = entry.error & ((std::uint64_t{1} << shift) - 1);
    entry.error = std::min(entry.count, (entry.error >> shift) + (rest > 0 ? 1 : 0));
  }
}

DenialSketch::DenialSketch(SteadyTime start) {
  for (std::size_t i = 0; i < kCells; ++i) cells_.push_back(std::make_unique<Cell>(start));
}

void DenialSketch::Add(const DeniedCharge& denied, SteadyTime now) noexcept {
  Cell& cell = *cells_[ThreadNumber::OfThisThread() % kCells];
  const std::scoped_lock lock(cell.mutex);
  cell.counts.Add(denied, now);
}

std::vector<DeniedKey> DenialSketch::Read(std::size_t most, SteadyTime now) const {
  // Where a key is missing it may have been denied as often as the least that is there.
  std::uint64_t missing = 0;
  std::unordered_map<std::uint64_t, DeniedKey> sums;
  for (const std::unique_ptr<Cell>& cell : cells_) {
    const std::scoped_lock lock(cell->mutex);
    cell->counts.Age(now);
    const std::uint64_t least = cell->counts.least();
    missing += least;
    for (const DeniedCell::Entry& entry : cell->counts.entries()) {
      if (entry.count == 0) continue;
      DeniedKey& sum = sums[entry.hash];
      if (sum.rule.empty()) sum = {std::string(entry.rule), std::string(entry.key_text())};
      // May be below zero for now; what is missing makes up for it.
      sum.denials += entry.count - least;
      sum.error += entry.error - least;
    }
  }
  std::vector<DeniedKey> keys;
  keys.reserve(sums.size());
  for (auto& [hash, key] : sums) {
    key.denials += missing;
    key.error += missing;
    keys.push_back(std::move(key));
  }
  const auto before = [](const DeniedKey& a, const DeniedKey& b) {
    return std::tuple(b.denials, a.error, std::tie(a.rule, a.key)) <
           std::tuple(a.denials, b.error, std::tie(b.rule, b.key));
  };
  const std::size_t count = std::min(most, keys.size());
  std::ranges::partial_sort(keys, keys.begin() + static_cast<std::ptrdiff_t>(count), before);
  keys.resize(count);
  return keys;
}

}  // namespace weir
