// The part of Table that grows it. Included by table.h.
#pragma once

namespace weir {

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
Table<kPayloadWords, Atomics, Shape>::Table(ByteBudget& budget, TableOptions options) noexcept
    : budget_(budget), options_(options), view_(nullptr), grow_at_(0) {
  const bool prepared = PrepareViews();
  Array first = MapArray(std::max<std::size_t>(1, options.first_lines));
  // The system may refuse what was wished for: a small table grows as well as it can.
  if (first.slots == nullptr) first = MapArray(1);
  if (!prepared || first.slots == nullptr) std::terminate();  // As when any other allocation fails.
  // If the budget has no room for it, it comes on top: without a line nothing could be decided.
  std::ignore = budget_.TryTake(first.bytes());
  PublishView(first, {});
  grow_at_.store(FullAt(first), std::memory_order_relaxed);
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
Table<kPayloadWords, Atomics, Shape>::~Table() = default;

// Takes addresses that were left before if they are not far too many: then the table can change its
// size as often as anybody wishes. Large pages at the ends of an array would count in a place that
// is much larger.
template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::MapArray(std::uint64_t lines, std::size_t spare) noexcept
    -> Array {
  const auto fits = [&](std::size_t i) {
    return i != current_place_ && places_[i].lines >= lines && places_[i].lines / 2 <= lines;
  };
  std::size_t chosen = kMaxPlaces;
  for (std::size_t i = 0; i < places_made_; ++i) {
    const bool better = chosen == kMaxPlaces || places_[i].lines < places_[chosen].lines;
    if (fits(i) && better) chosen = i;
  }
  if (chosen == kMaxPlaces) {
    if (places_made_ + spare >= kMaxPlaces) return {};
    Pages pages(Array{.lines = lines}.bytes(), PageSize::kLargeIfMany);
    if (pages.data() == nullptr) return {};
    chosen = places_made_++;
    places_[chosen] = {.pages = std::move(pages), .lines = lines};
  }
  Place& place = places_[chosen];
  place.pages.StartAgain();
  old_place_ = std::exchange(current_place_, chosen);
  std::byte* const data = place.pages.data();
  const std::size_t reach_from = Array{.lines = place.lines}.slot_bytes();
  return {.slots = reinterpret_cast<TableSlot*>(data),
          .reach = reinterpret_cast<std::uint8_t*>(data + reach_from),
          .lines = lines};
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
bool Table<kPayloadWords, Atomics, Shape>::PrepareViews() noexcept {
  if (views_left() < 2) return false;
  for (const std::size_t next : {views_made_, views_made_ + 1}) {
    std::unique_ptr<View[]>& block = views_[next / kViewsPerBlock];
    if (block == nullptr) block.reset(new (std::nothrow) View[kViewsPerBlock]);
    if (block == nullptr) return false;
  }
  return true;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::PublishView(Array current, Array old) noexcept -> View& {
  View& view = views_[views_made_ / kViewsPerBlock][views_made_ % kViewsPerBlock];
  ++views_made_;
  view.current = current;
  view.old = old;
  view_.store(&view, std::memory_order_release);
  return view;
}

// Doubles while small, then by a quarter, so that no more than a quarter is ever empty for want
// of a finer step; by less when the budget has no more.
template <std::size_t kPayloadWords, typename Atomics, typename Shape>
std::uint64_t Table<kPayloadWords, Atomics, Shape>::LinesAfterGrowth(
    const Array& array) const noexcept {
  constexpr std::uint64_t kSmall = (std::uint64_t{4} << 20) / kLineBytes;
  const std::uint64_t wished = array.lines < kSmall ? array.lines : array.lines / 4;
  const std::size_t left = budget_.left();
  const std::size_t usable = left > options_.spare_bytes ? left - options_.spare_bytes : 0;
  const std::uint64_t extra = std::min<std::uint64_t>(wished, usable / (kLineBytes + 1));
  if (extra < std::max<std::uint64_t>(1, array.lines / 16)) return 0;  // Not worth a move.
  return array.lines + extra;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::StartGrowth() noexcept -> Progress {
  const View* seen = view_.load(std::memory_order_acquire);
  if (LinesAfterGrowth(seen->current) == 0) return Progress::kNone;
  FlagLock driver(driver_);
  if (!driver.TryTake()) return Progress::kByOthers;
  const View& view = *view_.load(std::memory_order_acquire);
  if (view.moving()) return Progress::kMade;
  const Array old = view.current;
  const std::uint64_t lines = LinesAfterGrowth(old);
  if (lines == 0 || !PrepareViews()) return Progress::kNone;
  const std::size_t extra = (lines - old.lines) * (kLineBytes + 1);
  if (!budget_.TryTake(extra, options_.spare_bytes)) return Progress::kNone;
  const Array current = MapArray(lines);
  if (current.slots == nullptr) {
    budget_.GiveBack(extra);
    return Progress::kNone;
  }
  PublishView(current, old);
  grow_at_.store(FullAt(current), std::memory_order_relaxed);
  counters_.growths.Add();
  return Progress::kMade;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::Expect(std::uint64_t entries) noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // Far beyond any budget.
  const Array first = view_.load(std::memory_order_acquire)->current;
  // So many that FullAt is above it.
  const std::uint64_t wished = std::min(entries, kMost) / kSlotsPerLine * 25 / 18 + 2;
  if (wished <= first.lines) return;
  const std::size_t left = budget_.left();
  const std::size_t usable = left > options_.spare_bytes ? left - options_.spare_bytes : 0;
  const std::uint64_t extra = std::min(wished - first.lines, usable / (kLineBytes + 1));
  if (extra == 0 || !PrepareViews()) return;
  if (!budget_.TryTake(extra * (kLineBytes + 1), options_.spare_bytes)) return;
  const Array larger = MapArray(first.lines + extra);
  if (larger.slots == nullptr) {
    budget_.GiveBack(extra * (kLineBytes + 1));
    return;
  }
  PublishView(larger, {});
  grow_at_.store(FullAt(larger), std::memory_order_relaxed);
  Pages& unused = places_[old_place_].pages;
  unused.DiscardBelow(unused.size());
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
void Table<kPayloadWords, Atomics, Shape>::GrowIfFull(Ticks now) noexcept {
  const View& view = *view_.load(std::memory_order_acquire);
  if (view.moving()) {
    if (!view.shrinking()) MoveSome(now);
    return;
  }
  const std::size_t used = used_slots_.load(std::memory_order_relaxed);
  if (used < grow_at_.load(std::memory_order_relaxed)) return;
  // Look again only after some more have come, whatever the outcome.
  grow_at_.store(used + view.current.lines / 8 + 1, std::memory_order_relaxed);
  if (!MostlyPast(view.current, now)) StartGrowth();
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::GrowOn(Ticks now) noexcept -> Progress {
  const View& view = *view_.load(std::memory_order_acquire);
  if (view.shrinking()) return Progress::kByOthers;
  return view.moving() ? MoveSome(now) : StartGrowth();
}

// Samples lines: with a quarter of the entries past, newcomers find room without growth.
template <std::size_t kPayloadWords, typename Atomics, typename Shape>
bool Table<kPayloadWords, Atomics, Shape>::MostlyPast(const Array& array,
                                                      Ticks now) const noexcept {
  constexpr std::uint64_t kSamples = 64;
  const std::uint64_t stride = std::max<std::uint64_t>(1, array.lines / kSamples);
  std::size_t past = 0;
  std::size_t seen = 0;
  for (std::uint64_t line = 0; line < array.lines; line += stride) {
    for (std::size_t i = 0; i < kSlotsPerLine; ++i) {
      const SlotHead head = Atomics::Load(array.Line(line)[i]);
      if (head.fingerprint == 0) continue;
      ++seen;
      past += IsPast(head, now) ? 1U : 0U;
    }
  }
  return past * 4 > seen;
}

// The stripes of all keys that may live in lines first_line to last_line.
template <std::size_t kPayloadWords, typename Atomics, typename Shape>
std::pair<std::size_t, std::size_t> Table<kPayloadWords, Atomics, Shape>::StripesOf(
    const Array& array, std::uint64_t first_line, std::uint64_t last_line) const noexcept {
  __extension__ using Wide = unsigned __int128;
  const auto first_fingerprint = [&](std::uint64_t home) {
    return static_cast<std::uint64_t>(((static_cast<Wide>(home) << 64) + array.lines - 1) /
                                      array.lines);
  };
  const std::uint64_t low = first_line > kMaxReach ? first_line - kMaxReach : 0;
  const std::uint64_t high = last_line + 1 < array.lines ? last_line + 1 : array.lines;
  const std::uint64_t low_home = std::min(low, array.lines - 1);
  return {StripeOf(first_fingerprint(low_home)),
          high == array.lines ? kStripes - 1 : StripeOf(first_fingerprint(high) - 1)};
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
auto Table<kPayloadWords, Atomics, Shape>::MoveSome(Ticks now) noexcept -> Progress {
  FlagLock driver(driver_);
  if (!driver.TryTake()) return Progress::kByOthers;
  View& view = *view_.load(std::memory_order_acquire);
  if (!view.moving()) return Progress::kMade;
  const std::uint64_t all = view.old.physical_lines();
  const std::uint64_t begin = view.frontier.load(std::memory_order_relaxed);
  const std::uint64_t end = std::min<std::uint64_t>(all, begin + Shape::kLinesMovedAtOnce);

  const auto [first, last] = StripesOf(view.old, begin, end - 1);
  for (std::size_t i = first; i <= last; ++i) {
    for (unsigned spins = 0; stripes_[i].exchange(true, std::memory_order_acquire); ++spins) {
      Atomics::Pause(spins);
    }
  }
  std::uint64_t line = begin;
  while (line < end && MoveLine(view, line, now)) {
    view.frontier.store(++line, std::memory_order_release);
  }
  for (std::size_t i = first; i <= last; ++i) stripes_[i].store(false, std::memory_order_release);

  constexpr std::size_t kDiscardStep = std::size_t{256} << 10;
  Pages& pages = places_[old_place_].pages;
  const std::size_t moved_bytes = line == all ? pages.size() : line * kLineBytes;
  if (line == all || moved_bytes >= pages.discarded() + kDiscardStep) {
    pages.DiscardBelow(moved_bytes);
  }
  if (line == all) {
    PublishView(view.current, {});
    if (view.shrinking()) {
      budget_.GiveBack((view.old.lines - view.current.lines) * (kLineBytes + 1));
    }
  }
  return line > begin ? Progress::kMade : Progress::kHeldUp;
}

// Locks every used slot of a line, or none: a slot that a group holds may not move, and the
// holder may be waiting for our stripes, so we must not wait for it.
template <std::size_t kPayloadWords, typename Atomics, typename Shape>
bool Table<kPayloadWords, Atomics, Shape>::LockLine(TableSlot* line) noexcept {
  for (std::size_t i = 0; i < kSlotsPerLine; ++i) {
    SlotHead head = Atomics::Load(line[i]);
    while (head.fingerprint != 0 && !IsLocked(head.word) &&
           !Atomics::CompareExchange(line[i], head, {head.fingerprint, head.word | kLockedBit})) {
      head = Atomics::Load(line[i]);
    }
    if (head.fingerprint == 0 || !IsLocked(head.word)) continue;
    while (i-- > 0) {
      const SlotHead mine = Atomics::Load(line[i]);
      if (mine.fingerprint != 0) Atomics::StoreWord(line[i], mine.word & ~kLockedBit);
    }
    return false;
  }
  return true;
}

template <std::size_t kPayloadWords, typename Atomics, typename Shape>
bool Table<kPayloadWords, Atomics, Shape>::MoveLine(View& view, std::uint64_t line,
                                                    Ticks now) noexcept {
  TableSlot* from = view.old.Line(line);
  if (!LockLine(from)) return false;
  const std::size_t reach = view.shrinking() ? ReachWhileShrinking() : kMaxReach;
  for (std::size_t i = 0; i < kSlotsPerLine; ++i) {
    const SlotHead head = Atomics::Load(from[i]);
    if (head.fingerprint == 0) continue;
    const SlotHead settled{head.fingerprint, head.word & ~kLockedBit};
    used_slots_.fetch_sub(1, std::memory_order_relaxed);
    TableSlot* to = nullptr;
    if (!IsPast(settled, now)) {
      to = Settle(view.current, reach, kPayloadWords == 0 ? settled : head, now);
      if (to == nullptr) CountEvicted(settled);
    }
    if constexpr (kPayloadWords > 0) {
      if (to != nullptr) {
        std::copy_n(from[i].payload, kPayloadWords, to->payload);
        Atomics::StoreWord(*to, settled.word);
      } else if (options_.release != nullptr) {
        options_.release(options_.release_context, from[i].payload);
      }
    }
    Atomics::Store(from[i], {0, kLockedBit});
  }
  return true;
}

}  // namespace weir
