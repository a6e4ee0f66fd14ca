#include "store/memory/event_pool.h"

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

// So many chunks are asked of the budget at once.
constexpr std::uint32_t kChunksPerStep = 512;

}  // namespace

EventPool::EventPool(ByteBudget& budget, std::size_t spare_bytes) noexcept
    : budget_(budget),
      spare_bytes_(spare_bytes),
      pages_(budget.cap() + sizeof(EventChunk)),
      chunks_(reinterpret_cast<EventChunk*>(pages_.data())) {}

std::uint32_t EventPool::Take() noexcept {
  const std::scoped_lock lock(mutex_);
  if (first_free_ != 0) {
    const std::uint32_t chunk = first_free_;
    first_free_ = chunks_[chunk].next;
    --free_;
    return chunk;
  }
  if (chunks_ == nullptr) return 0;
  if (used_ == taken_) {
    const bool fits = (std::size_t{taken_} + kChunksPerStep) * sizeof(EventChunk) <= pages_.size();
    if (!fits || !budget_.TryTake(kChunksPerStep * sizeof(EventChunk), spare_bytes_)) return 0;
    taken_ += kChunksPerStep;
  }
  return used_++;
}

void EventPool::GiveBack(std::uint32_t chunk) noexcept {
  const std::scoped_lock lock(mutex_);
  chunks_[chunk].next = first_free_;
  first_free_ = chunk;
  ++free_;
}

void EventPool::GiveBackLog(std::uint64_t* payload) noexcept {
  const std::uint32_t head = HeadOf(payload);
  if (head == 0) return;
  const std::uint32_t tail = TailOf(payload);
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t chunk = head; chunk != tail; chunk = chunks_[chunk].next) ++free_;
  ++free_;
  chunks_[tail].next = first_free_;
  first_free_ = head;
  payload[0] = 0;
  payload[1] = 0;
}

std::size_t EventPool::chunks_in_use() const noexcept {
  const std::scoped_lock lock(mutex_);
  return used_ - 1 - free_;
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
