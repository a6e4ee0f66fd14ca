// The part of Table that finds, takes over and gives up slots. Included by table.h.
#pragma once

namespace weir {

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
[[gnu::always_inline]] inline auto Table<kPayloadWords, Atomics, Shape>::FindIn(
    const Array& array, std::uint64_t frontier, std::uint64_t fingerprint) const noexcept
    -> TableSlot* {
  const std::uint64_t home = array.HomeOf(fingerprint);
  if (home >= frontier) [[likely]] {
    TableSlot* line = array.Line(home);
    TableSlot* slot = Atomics::Find(line, fingerprint);
    if (slot != nullptr) [[likely]]
      return slot;
    if (Atomics::Find(line, 0) != nullptr) return nullptr;
  }
  return FindBeyondHome(array, home, frontier, fingerprint);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::FindBeyondHome(const Array& array, std::uint64_t home,
                                                          std::uint64_t frontier,
                                                          std::uint64_t fingerprint) const noexcept
    -> TableSlot* {
  const std::uint64_t last = home + Atomics::LoadByte(array.reach[home]);
  for (std::uint64_t line = std::max(home + 1, frontier); line <= last; ++line) {
    TableSlot* slots = array.Line(line);
    if (TableSlot* slot = Atomics::Find(slots, fingerprint); slot != nullptr) return slot;
    if (Atomics::Find(slots, 0) != nullptr) return nullptr;
  }
  return nullptr;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
[[gnu::always_inline]] inline auto Table<kPayloadWords, Atomics, Shape>::Find(
    const View& view, std::uint64_t fingerprint) const noexcept -> TableSlot* {
  if (view.moving()) [[unlikely]]
    return FindWhileMoving(view, fingerprint);
  return FindIn(view.current, 0, fingerprint);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::FindWhileMoving(const View& view,
                                                           std::uint64_t fingerprint) const noexcept
    -> TableSlot* {
  const std::uint64_t frontier = view.frontier.load(std::memory_order_acquire);
  TableSlot* slot = FindIn(view.old, frontier, fingerprint);
  if (slot != nullptr) return slot;
  // Moved already, moved just now, or put there because its old lines were full.
  return FindIn(view.current, 0, fingerprint);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::Prefetch(std::uint64_t fingerprint) const noexcept {
  const View& view = *view_.load(std::memory_order_acquire);
  const auto touch = [&](const Array& array) {
    const auto* line = reinterpret_cast<const std::byte*>(array.Line(array.HomeOf(fingerprint)));
    for (std::size_t at = 0; at < std::min<std::size_t>(kLineBytes, 128); at += 64) {
      __builtin_prefetch(line + at, 1);
    }
  };
  touch(view.current);
  if (view.moving()) [[unlikely]]
    touch(view.old);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
template <typename StepFunction>
void Table<kPayloadWords, Atomics, Shape>::Update(std::uint64_t fingerprint, Ticks now,
                                                  StepFunction&& step) noexcept {
  static_assert(kPayloadWords == 0, "a payload is changed under the slot's lock");
  TableSlot* slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
  for (unsigned spins = 0;; ++spins) {
    if (slot == nullptr) [[unlikely]] {
      const std::uint64_t word = step(std::uint64_t{0});
      const bool remember = FreshAt(word) > now;
      const Miss miss =
          FindOrInsert(fingerprint, remember ? SlotHead{fingerprint, word} : SlotHead{}, now,
                       CallerHolds::kNothing);
      if (miss.found == nullptr) return;
      slot = miss.found;
    }
    const SlotHead head = Atomics::Load(*slot);
    if (head.fingerprint != fingerprint) [[unlikely]] {
      slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
      continue;
    }
    if (IsLocked(head.word)) [[unlikely]] {
      Atomics::Pause(spins);
      continue;
    }
    const std::uint64_t word = step(head.word);
    if (word == head.word) return;
    if (Atomics::CompareExchange(*slot, head, {fingerprint, word})) [[likely]]
      return;
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
template <typename StepFunction>
[[gnu::always_inline]] inline bool Table<kPayloadWords, Atomics, Shape>::TryUpdate(
    std::uint64_t fingerprint, StepFunction&& step) noexcept {
  TableSlot* slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
  if (slot == nullptr) [[unlikely]]
    return false;
  // Whether it still belongs to the key shows in the end, when both are looked at together.
  const std::uint64_t found = Atomics::LoadWord(*slot);
  if (IsLocked(found)) [[unlikely]]
    return false;
  const SlotHead expected{fingerprint, found};
  const std::uint64_t word = step(found);
  if (word == found) return Atomics::Load(*slot) == expected;
  return Atomics::CompareExchange(*slot, expected, {fingerprint, word});
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
[[gnu::always_inline]] inline auto Table<kPayloadWords, Atomics, Shape>::See(
    std::uint64_t fingerprint) const noexcept -> Seen {
  TableSlot* slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
  if (slot == nullptr) [[unlikely]]
    return {.slot = nullptr, .fingerprint = fingerprint, .word = 0};
  // Whether it still belongs to the key shows when something is stored.
  const std::uint64_t word = Atomics::LoadWord(*slot);
  return {.slot = IsLocked(word) ? nullptr : slot, .fingerprint = fingerprint, .word = word};
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
[[gnu::always_inline]] inline bool Table<kPayloadWords, Atomics, Shape>::TryStoreAll(
    std::span<const Seen> keys, std::span<const std::uint64_t> words) noexcept {
  static_assert(kPayloadWords == 0, "a payload is changed under the slot's lock");
  // The last needs no lock: once it is stored nobody can see the others as they were.
  const std::size_t last = keys.size() - 1;
  for (std::size_t i = 0; i <= last; ++i) {
    const auto& [slot, fingerprint, word] = keys[i];
    const std::uint64_t next = i == last ? words[i] : word | kLockedBit;
    if (Atomics::CompareExchange(*slot, {fingerprint, word}, {fingerprint, next})) [[likely]]
      continue;
    while (i-- > 0) Atomics::StoreWord(*keys[i].slot, keys[i].word);
    return false;
  }
  for (std::size_t i = 0; i < last; ++i) Atomics::StoreWord(*keys[i].slot, words[i]);
  return true;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::Lock(std::uint64_t fingerprint, Ticks now,
                                                CallerHolds caller_holds) noexcept -> Locked {
  TableSlot* slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
  for (unsigned spins = 0;; ++spins) {
    if (slot == nullptr) {
      const Miss miss = FindOrInsert(fingerprint, {fingerprint, kLockedBit}, now, caller_holds);
      if (miss.inserted != nullptr) return {.slot = miss.inserted, .word = 0, .absent = true};
      slot = miss.found;
    }
    // FindOrInsert has set `found` or `inserted`, which the analyzer does not see.
    const SlotHead head = Atomics::Load(*slot);  // NOLINT(clang-analyzer-core.NonNullParamChecker)
    if (head.fingerprint != fingerprint) {
      slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
    } else if (IsLocked(head.word)) {
      Atomics::Pause(spins);
    } else if (Atomics::CompareExchange(*slot, head, {fingerprint, head.word | kLockedBit})) {
      return {.slot = slot, .word = head.word, .absent = false};
    }
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::LockIfPresent(std::uint64_t fingerprint) noexcept
    -> std::optional<Locked> {
  TableSlot* slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
  for (unsigned spins = 0;; ++spins) {
    if (slot == nullptr) {
      slot = FindOrInsert(fingerprint, {}, Ticks(0), CallerHolds::kSlots).found;
      if (slot == nullptr) return std::nullopt;
    }
    const SlotHead head = Atomics::Load(*slot);
    if (head.fingerprint != fingerprint) {
      slot = Find(*view_.load(std::memory_order_acquire), fingerprint);
    } else if (IsLocked(head.word)) {
      Atomics::Pause(spins);
    } else if (Atomics::CompareExchange(*slot, head, {fingerprint, head.word | kLockedBit})) {
      return Locked{.slot = slot, .word = head.word, .absent = false};
    }
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::Unlock(const Locked& locked,
                                                  std::uint64_t word) noexcept {
  Atomics::StoreWord(*locked.slot, word & ~kLockedBit);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::FindOrInsert(std::uint64_t fingerprint, SlotHead head,
                                                        Ticks now,
                                                        CallerHolds caller_holds) noexcept -> Miss {
  unsigned fruitless = 0;
  for (unsigned attempts = 0;; ++attempts) {
    FlagLock stripe(stripes_[StripeOf(fingerprint)]);
    stripe.Take();
    View& view = *view_.load(std::memory_order_acquire);
    if (TableSlot* slot = Find(view, fingerprint); slot != nullptr) {
      return {.found = slot, .inserted = nullptr};
    }
    if (head.fingerprint == 0) return {.found = nullptr, .inserted = nullptr};
    TableSlot* slot = TakeOver(view, head, now, fruitless < kPatience);
    stripe.Release();
    if (slot != nullptr) {
      GrowIfFull(now);
      return {.found = nullptr, .inserted = slot};
    }
    // The thread that moves lines, or the one that holds a slot of the next line, may have been
    // preempted while other threads fill the free slots: waiting is better than evicting a live
    // key. But a caller that holds slots itself may be the one that growth waits for.
    const Progress progress = GrowOn(now);
    if (progress == Progress::kMade) continue;
    const bool held_up_by_others =
        progress == Progress::kHeldUp && caller_holds == CallerHolds::kNothing;
    if (progress != Progress::kByOthers && !held_up_by_others) ++fruitless;
    Atomics::Pause(attempts);
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::TakeOver(View& view, SlotHead head, Ticks now,
                                                    bool patient) noexcept -> TableSlot* {
  const bool shrinking = view.shrinking();
  const bool at_cap = shrinking || (!view.moving() && LinesAfterGrowth(view.current) == 0);
  std::size_t reach = at_cap ? Shape::kReachAtCap : kMaxReach;
  if (shrinking) reach = ReachWhileShrinking();
  if (view.moving()) {
    // What is still in the old array needs room in the new one, too.
    const std::size_t used = used_slots_.load(std::memory_order_relaxed);
    if (patient && !shrinking && used >= FullAt(view.current)) return nullptr;
    const std::uint64_t frontier = view.frontier.load(std::memory_order_acquire);
    if (view.old.HomeOf(head.fingerprint) >= frontier) {
      if (TableSlot* slot = TakeFree(view.old, reach, head, now); slot != nullptr) return slot;
    }
  }
  if (TableSlot* slot = TakeFree(view.current, reach, head, now); slot != nullptr) return slot;
  if (!at_cap && patient) return nullptr;
  if (shrinking) NoteFull();
  if (TableSlot* slot = Evict(view.current, head); slot != nullptr) return slot;
  // All its neighbours are locked, perhaps by the very group that this key belongs to.
  return at_cap ? TakeFree(view.current, kMaxReach, head, now) : nullptr;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
bool Table<kPayloadWords, Atomics, Shape>::IsPast(SlotHead head, Ticks now) const noexcept {
  return !IsLocked(head.word) && FreshAt(head.word) + options_.grace <= now;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
bool Table<kPayloadWords, Atomics, Shape>::Replace(TableSlot& slot, SlotHead expected,
                                                   SlotHead head) noexcept {
  if (!Atomics::CompareExchange(slot, expected, head)) return false;
  if constexpr (kPayloadWords > 0) {
    if (expected.fingerprint != 0) {
      if (options_.release != nullptr) options_.release(options_.release_context, slot.payload);
      std::fill_n(slot.payload, kPayloadWords, 0);
    }
  }
  return true;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::TakeFree(const Array& array, std::size_t reach,
                                                    SlotHead head, Ticks now) noexcept
    -> TableSlot* {
  const std::uint64_t home = array.HomeOf(head.fingerprint);
  TableSlot* const first = array.Line(home);
  TableSlot* const end = first + (reach + 1) * kSlotsPerLine;
  for (TableSlot* slot = first; slot != end;) {
    const SlotHead found = Atomics::Load(*slot);
    const bool unused = found.fingerprint == 0;
    if (!unused && !IsPast(found, now)) {
      ++slot;
    } else if (Replace(*slot, found, head)) {
      if (unused) used_slots_.fetch_add(1, std::memory_order_relaxed);
      RaiseReach(array, home, slot);
      return slot;
    }  // Otherwise somebody was faster: look at the same slot again.
  }
  return nullptr;
}

// Keys of several stripes, and the mover, share a line. Nobody relies on it before the stripe is
// let go: who misses looks again under its lock.
template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::RaiseReach(const Array& array, std::uint64_t home,
                                                      const TableSlot* slot) noexcept {
  const auto distance =
      static_cast<std::uint8_t>(static_cast<std::size_t>(slot - array.Line(home)) / kSlotsPerLine);
  Atomics::RaiseByte(array.reach[home], distance);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::FirstToGo(const Array& array,
                                                     std::uint64_t home) const noexcept -> Owned {
  Owned first{.slot = nullptr, .owner = {}};
  for (TableSlot& slot : std::span(array.Line(home), 2 * kSlotsPerLine)) {
    const SlotHead found = Atomics::Load(slot);
    if (IsLocked(found.word)) continue;
    if (first.slot == nullptr || Rank(found) < Rank(first.owner)) {
      first = {.slot = &slot, .owner = found};
    }
  }
  return first;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::Evict(const Array& array, SlotHead head) noexcept
    -> TableSlot* {
  const std::uint64_t home = array.HomeOf(head.fingerprint);
  const auto [victim, owner] = FirstToGo(array, home);
  if (victim == nullptr || !Replace(*victim, owner, head)) return nullptr;
  RaiseReach(array, home, victim);
  CountEvicted(owner);
  return victim;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
template <typename Visitor>
void Table<kPayloadWords, Atomics, Shape>::VisitAll(Visitor&& visit) const noexcept {
  const View& view = *view_.load(std::memory_order_acquire);
  for (const Array& array : {view.old, view.current}) {
    if (array.lines == 0) continue;
    const std::uint64_t lines = array.physical_lines();
    for (std::uint64_t first = 0; first < kVisitStride; ++first) {
      for (std::uint64_t line = first; line < lines; line += kVisitStride) {
        // These are too far apart for the processor to see what comes next.
        const std::uint64_t soon = line + 8 * kVisitStride;
        if (soon < lines) __builtin_prefetch(array.Line(soon));
        for (const TableSlot& slot : std::span(array.Line(line), kSlotsPerLine)) {
          if (slot.fingerprint != 0) visit(slot);  // What has moved has none any more.
        }
      }
    }
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
template <typename Visitor>
void Table<kPayloadWords, Atomics, Shape>::VisitLine(TableSlot* line, Visitor&& visit) noexcept {
  for (TableSlot& slot : std::span(line, kSlotsPerLine)) {
    const SlotHead head = Atomics::Load(slot);
    if (head.fingerprint == 0 || IsLocked(head.word)) continue;
    const SlotHead locked{head.fingerprint, head.word | kLockedBit};
    if (!Atomics::CompareExchange(slot, head, locked)) continue;
    visit(Locked{.slot = &slot, .word = head.word, .absent = false});
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
template <typename Visitor>
void Table<kPayloadWords, Atomics, Shape>::VisitSome(std::size_t lines, Visitor&& visit) noexcept {
  const View& view = *view_.load(std::memory_order_acquire);
  const std::uint64_t old_lines = view.moving() ? view.old.physical_lines() : 0;
  const std::uint64_t all = view.current.physical_lines() + old_lines;
  const std::uint64_t start = next_visited_line_.fetch_add(lines, std::memory_order_relaxed);
  for (std::uint64_t next = start; next < start + lines; ++next) {
    const std::uint64_t line = next % all;
    VisitLine(line < old_lines ? view.old.Line(line) : view.current.Line(line - old_lines), visit);
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
template <typename Visitor>
void Table<kPayloadWords, Atomics, Shape>::VisitEach(Visitor&& visit) noexcept {
  const View& view = *view_.load(std::memory_order_acquire);
  for (const Array& array : {view.old, view.current}) {
    const std::uint64_t lines = array.lines == 0 ? 0 : array.physical_lines();
    for (std::uint64_t line = 0; line < lines; ++line) VisitLine(array.Line(line), visit);
  }
}

}  // namespace weir
