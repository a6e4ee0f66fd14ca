// The part of Table that makes it smaller while others use it. Included by table.h.
#pragma once

namespace weir {

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::UseMore(Ticks now) noexcept {
  // At the budget the next look whether to grow has moved out of reach.
  const View& view = *view_.load(std::memory_order_acquire);
  grow_at_.store(FullAt(view.current), std::memory_order_relaxed);
  GrowIfFull(now);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
std::size_t Table<kPayloadWords, Atomics, Shape>::CountLive(Ticks now) const noexcept {
  const View& view = *view_.load(std::memory_order_acquire);
  std::size_t live = 0;
  for (const Array& array : {view.old, view.current}) {
    const std::uint64_t lines = array.lines == 0 ? 0 : array.physical_lines();
    for (const TableSlot& slot : std::span(array.slots, lines * kSlotsPerLine)) {
      const SlotHead head = Atomics::Load(slot);
      live += head.fingerprint != 0 && !IsPast(head, now) ? 1U : 0U;
    }
  }
  return live;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::ShrinkTo(SmallerTable smaller, Ticks now) noexcept {
  constexpr std::size_t kBeyond = kMaxReach * kLineBytes;
  const std::size_t for_lines = smaller.bytes > kBeyond ? smaller.bytes - kBeyond : 0;
  const std::uint64_t lines = std::max<std::uint64_t>(1, for_lines / (kLineBytes + 1));
  // What is growing has to be done with that first.
  do {
    MoveAll(now);
  } while (StartShrinking(lines, smaller.live) == Progress::kByOthers);
  MoveAll(now);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::MoveAll(Ticks now) noexcept {
  unsigned in_vain = 0;
  while (view_.load(std::memory_order_acquire)->moving()) {
    if (MoveSome(now) == Progress::kMade) {
      in_vain = 0;
    } else {
      Atomics::Pause(in_vain++);  // Whoever holds a slot has to let go of it.
    }
  }
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::StartShrinking(std::uint64_t lines,
                                                          std::size_t live) noexcept -> Progress {
  FlagLock driver(driver_);
  driver.Take();
  const View& view = *view_.load(std::memory_order_acquire);
  if (view.moving()) return Progress::kByOthers;
  const Array old = view.current;
  if (lines >= old.lines || views_left() < 2 * kMovesForGrowth || !PrepareViews()) {
    return Progress::kNone;
  }
  const Array current = MapArray(lines, kMovesForGrowth);
  if (current.slots == nullptr) return Progress::kNone;
  // Where nearly all places will be taken, to look far for a free one costs much and finds little.
  const std::size_t nearly_all = lines * kSlotsPerLine * 15 / 16;
  shrinks_into_full_.store(live > nearly_all, std::memory_order_relaxed);
  grow_at_.store(FullAt(current), std::memory_order_relaxed);
  PublishView(current, old);
  return Progress::kMade;
}

// The mover holds stripes, so it waits for nobody: if all the neighbours are locked it looks
// further away, and gives up the entry before it waits.
template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::Settle(const Array& array, std::size_t reach,
                                                  SlotHead head, Ticks now) noexcept -> TableSlot* {
  const std::uint64_t home = array.HomeOf(head.fingerprint);
  for (;;) {
    if (TableSlot* slot = TakeFree(array, reach, head, now); slot != nullptr) return slot;
    NoteFull();
    const auto [victim, owner] = FirstToGo(array, home);
    if (victim == nullptr) return TakeFree(array, kMaxReach, head, now);
    if (Rank(head) <= Rank(owner)) return nullptr;
    if (!Replace(*victim, owner, head)) continue;
    RaiseReach(array, home, victim);
    CountEvicted(owner);
    return victim;
  }
}

}  // namespace weir
