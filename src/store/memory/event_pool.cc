#include "store/memory/event_pool.h"

#include <algorithm>
#include <span>
#include <utility>

namespace weir {
namespace {

constexpr int kOffsetBits = 3;
constexpr int kTotalBits = 20;
constexpr int kSizeBits = 20;
constexpr int kTotalShift = 2 * kOffsetBits;
constexpr int kSizeShift = kTotalShift + kTotalBits;
constexpr int kHolesShift = kSizeShift + kSizeBits;
constexpr std::uint64_t kOffsetMask = (1U << kOffsetBits) - 1;
constexpr std::uint64_t kTotalMask = (1U << kTotalBits) - 1;
constexpr std::uint64_t kSizeMask = (1U << kSizeBits) - 1;

std::uint32_t HeadOf(const std::uint64_t* payload) noexcept {
  return static_cast<std::uint32_t>(payload[0]);
}
std::uint32_t TailOf(const std::uint64_t* payload) noexcept {
  return static_cast<std::uint32_t>(payload[0] >> 32);
}

constexpr std::uint32_t kChunksPerStep = EventPool::kStepBytes / sizeof(EventChunk);
constexpr std::size_t kMostChunks = std::size_t{1} << 31;
// Nobody holds the mutex for more than so many free chunks, but for those of one log.
constexpr int kSortedAtOnce = 64;

}  // namespace

EventPool::EventPool(ByteBudget& budget, std::size_t spare_bytes) noexcept
    : budget_(budget),
      spare_bytes_(spare_bytes),
      first_(MapSegment(0, budget.cap() / sizeof(EventChunk) + 1)),
      end_(first_.end) {}

EventPool::Segment EventPool::MapSegment(std::uint32_t begin, std::size_t chunks) noexcept {
  Segment segment{.pages = Pages(chunks * sizeof(EventChunk)), .begin = begin, .end = begin};
  if (segment.pages.data() == nullptr) return segment;
  segment.chunks = reinterpret_cast<EventChunk*>(segment.pages.data());
  segment.end = begin + static_cast<std::uint32_t>(chunks);
  return segment;
}

EventChunk& EventPool::AtLater(std::uint32_t chunk) const noexcept {
  const Segment* segment = later_.data();
  while (chunk >= segment->end) ++segment;
  return segment->chunks[chunk - segment->begin];
}

void EventPool::Extend(std::size_t bytes) noexcept {
  const std::size_t wanted = std::min(bytes / sizeof(EventChunk), kMostChunks) + 1;
  const std::uint32_t end = later_made_ == 0 ? first_.end : later_[later_made_ - 1].end;
  if (end == 0 || wanted <= end || later_made_ == kMostLater) return;
  // At least as many again, so that a few segments are enough for ever.
  const std::size_t doubled = std::min(std::size_t{end} * 2, kMostChunks + 1);
  Segment segment = MapSegment(end, std::max(wanted, doubled) - end);
  if (segment.chunks == nullptr) segment = MapSegment(end, wanted - end);
  if (segment.chunks == nullptr) return;
  later_[later_made_] = std::move(segment);
  const std::scoped_lock lock(mutex_);
  end_ = later_[later_made_++].end;
}

std::uint32_t EventPool::TakeFree() noexcept {
  if (first_free_ == 0) return 0;
  const std::uint32_t chunk = std::exchange(first_free_, At(first_free_).next);
  --free_;
  return chunk;
}

std::uint32_t EventPool::Take() noexcept {
  const std::scoped_lock lock(mutex_);
  const bool lowering = ceiling_ != kNoCeiling;
  if (lowering && in_use() >= ceiling_) {
    // Whoever comes may give up others' logs for it, and is not sent away for long; but what was
    // given up in order to have fewer must not all be taken again.
    const bool in_excess = in_use() > ceiling_;
    if (!in_excess || 2 * taken_again_ >= given_back_) return 0;
    ++taken_again_;
  }
  for (int i = 0; i < 16 && first_free_ == 0 && first_unsorted_ != 0; ++i) SortSomeFree();
  if (const std::uint32_t chunk = TakeFree(); chunk != 0) return chunk;
  if (lowering && used_ > ceiling_) {
    if (first_beyond_ == 0) return 0;
    --beyond_free_;
    return std::exchange(first_beyond_, At(first_beyond_).next);
  }
  if (used_ == taken_) {
    const bool fits = std::size_t{taken_} + kChunksPerStep <= end_;
    if (!fits || !budget_.TryTake(kStepBytes, spare_bytes_)) return 0;
    taken_ += kChunksPerStep;
  }
  return used_++;
}

void EventPool::Free(std::uint32_t chunk) noexcept {
  std::uint32_t& list = chunk > ceiling_ ? first_beyond_ : first_free_;
  ++(chunk > ceiling_ ? beyond_free_ : free_);
  At(chunk).next = std::exchange(list, chunk);
  ++given_back_;
}

void EventPool::GiveBack(std::uint32_t chunk) noexcept {
  const std::scoped_lock lock(mutex_);
  Free(chunk);
}

void EventPool::GiveBackLog(std::uint64_t* payload) noexcept {
  const std::uint32_t head = HeadOf(payload);
  if (head == 0) return;
  const std::uint32_t tail = TailOf(payload);
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t chunk = head; chunk != tail;) {
    const std::uint32_t next = At(chunk).next;
    Free(chunk);
    chunk = next;
  }
  Free(tail);
  payload[0] = 0;
  payload[1] = 0;
}

std::size_t EventPool::chunks_in_use() const noexcept {
  const std::scoped_lock lock(mutex_);
  return in_use();
}

void EventPool::StartLowering(std::size_t bytes) noexcept {
  const std::size_t most = bytes / kStepBytes * kChunksPerStep;
  const std::scoped_lock lock(mutex_);
  if (taken_ - 1 <= most) return;
  ceiling_ = static_cast<std::uint32_t>(most);
  first_unsorted_ = std::exchange(first_free_, 0);
  given_back_ = 0;
  taken_again_ = 0;
}

void EventPool::SortSomeFree() noexcept {
  for (int i = 0; i < kSortedAtOnce && first_unsorted_ != 0; ++i) {
    const std::uint32_t chunk = std::exchange(first_unsorted_, At(first_unsorted_).next);
    --free_;
    Free(chunk);
    --given_back_;  // It was free before.
  }
}

std::uint32_t EventPool::beyond_in_use() const noexcept {
  const std::uint32_t handed_out = used_ - 1;
  return handed_out > ceiling_ ? handed_out - ceiling_ - beyond_free_ : 0;
}

std::size_t EventPool::excess() const noexcept {
  const std::scoped_lock lock(mutex_);
  return in_use() > ceiling_ ? in_use() - ceiling_ : 0;
}

std::uint32_t EventPool::TakeBelow() noexcept {
  const std::scoped_lock lock(mutex_);
  while (first_free_ == 0 && first_unsorted_ != 0) SortSomeFree();
  if (const std::uint32_t chunk = TakeFree(); chunk != 0) return chunk;
  return used_ <= ceiling_ && used_ < taken_ ? used_++ : 0;
}

bool EventPool::MoveDown(std::uint64_t* payload) noexcept {
  std::uint32_t head = HeadOf(payload);
  std::uint32_t tail = TailOf(payload);
  bool all = true;
  for (std::uint32_t chunk = head; chunk != 0 && all;) {
    const bool last = chunk == tail;
    const std::uint32_t next = last ? 0 : At(chunk).next;
    const std::uint32_t to = chunk > ceiling_ ? TakeBelow() : chunk;
    all = to != 0;
    if (all && to != chunk) {
      At(to) = At(chunk);
      (chunk == head ? head : At(At(to).previous).next) = to;
      (last ? tail : At(next).previous) = to;
      GiveBack(chunk);
    }
    chunk = next;
  }
  payload[0] = std::uint64_t{tail} << 32 | head;
  return all;
}

bool EventPool::FinishLowering() noexcept {
  const auto sort_some = [&] {
    const std::scoped_lock lock(mutex_);
    SortSomeFree();
    return first_unsorted_ != 0;
  };
  while (sort_some()) {
  }
  std::uint32_t end = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (ceiling_ == kNoCeiling) return true;
    if (beyond_in_use() > 0) return false;
    first_beyond_ = 0;
    end = used_;
  }
  // Nobody has one of these, nor can have before this is done.
  const std::uint32_t begin = ceiling_ + 1;
  if (end > begin) Discard(begin, end);
  std::size_t bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    used_ = std::min(used_, begin);
    bytes = std::size_t{taken_ - begin} * sizeof(EventChunk);
    taken_ = begin;
    beyond_free_ = 0;
    ceiling_ = kNoCeiling;
  }
  budget_.GiveBack(bytes);
  return true;
}

void EventPool::Discard(std::uint32_t begin, std::uint32_t end) noexcept {
  const auto discard_in = [&](Segment& segment) {
    const std::uint32_t from = std::max(begin, segment.begin);
    if (from >= segment.end || end <= segment.begin) return;
    // Up to the end of the last page that was touched.
    const std::size_t to = (std::size_t{end} - segment.begin + 64) * sizeof(EventChunk);
    segment.pages.DiscardBetween(std::size_t{from - segment.begin} * sizeof(EventChunk), to);
  };
  discard_in(first_);
  for (Segment& segment : std::span(later_).first(later_made_)) discard_in(segment);
}

ChunkedLog::ChunkedLog(EventPool& pool, std::uint64_t* payload) noexcept
    : pool_(pool),
      payload_(payload),
      head_(HeadOf(payload)),
      tail_(TailOf(payload)),
      head_offset_(static_cast<std::uint32_t>(payload[1] & kOffsetMask)),
      tail_length_(static_cast<std::uint32_t>(payload[1] >> kOffsetBits & kOffsetMask)) {
  total_ = static_cast<std::int64_t>(payload[1] >> kTotalShift & kTotalMask);
  size_ = static_cast<std::int64_t>(payload[1] >> kSizeShift & kSizeMask);
  holes_ = static_cast<std::int64_t>(payload[1] >> kHolesShift);
}

ChunkedLog::~ChunkedLog() {
  if (spare_ != 0) pool_.GiveBack(spare_);
}

void ChunkedLog::Save() noexcept {
  payload_[0] = std::uint64_t{tail_} << 32 | head_;
  payload_[1] = std::uint64_t{head_offset_} | std::uint64_t{tail_length_} << kOffsetBits |
                static_cast<std::uint64_t>(total_) << kTotalShift |
                static_cast<std::uint64_t>(size_) << kSizeShift |
                static_cast<std::uint64_t>(holes_) << kHolesShift;
}

Event* ChunkedLog::First() noexcept {
  return head_ == 0 ? nullptr : &pool_.At(head_).events[head_offset_];
}

Event* ChunkedLog::Last() noexcept {
  return tail_ == 0 ? nullptr : &pool_.At(tail_).events[tail_length_ - 1];
}

Event* ChunkedLog::Next(Event* event) noexcept {
  if (event == Last()) return nullptr;
  // A chunk is aligned to its size, so an event's address tells its chunk.
  const std::size_t within = reinterpret_cast<std::uintptr_t>(event) % sizeof(EventChunk);
  auto* chunk = reinterpret_cast<EventChunk*>(reinterpret_cast<std::byte*>(event) - within);
  if (event != &chunk->events.back()) return event + 1;
  return &pool_.At(chunk->next).events.front();
}

bool ChunkedLog::MakeRoom() noexcept {
  if (tail_ != 0 && tail_length_ < kEventsPerChunk) return true;
  if (spare_ == 0) spare_ = pool_.Take();
  return spare_ != 0;
}

void ChunkedLog::PushLast(Event event) noexcept {
  if (tail_ == 0 || tail_length_ == kEventsPerChunk) {
    const std::uint32_t chunk = std::exchange(spare_, 0);
    pool_.At(chunk).previous = tail_;
    if (tail_ == 0) {
      head_ = chunk;
      head_offset_ = 0;
    } else {
      pool_.At(tail_).next = chunk;
    }
    tail_ = chunk;
    tail_length_ = 0;
  }
  pool_.At(tail_).events[tail_length_++] = event;
}

void ChunkedLog::PopFirst() noexcept {
  ++head_offset_;
  const bool empty = head_ == tail_ && head_offset_ == tail_length_;
  if (!empty && head_offset_ < kEventsPerChunk) return;
  const std::uint32_t chunk = head_;
  head_ = empty ? 0 : pool_.At(chunk).next;
  if (empty) tail_ = 0;
  head_offset_ = 0;
  pool_.GiveBack(chunk);
}

void ChunkedLog::PopLast() noexcept {
  --tail_length_;
  const bool empty = head_ == tail_ && head_offset_ == tail_length_;
  if (!empty && tail_length_ > 0) return;
  const std::uint32_t chunk = tail_;
  tail_ = empty ? 0 : pool_.At(chunk).previous;
  if (empty) head_ = 0;
  tail_length_ = empty ? 0 : kEventsPerChunk;
  if (empty) head_offset_ = 0;
  pool_.GiveBack(chunk);
}

}  // namespace weir
