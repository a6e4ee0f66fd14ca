// Memory for event logs: chunks of seven events, linked in both directions, all of one size, so
// that what one key gives up any other can use.
//
//   Chunk (128 bytes):   | next 4 | previous 4 | 7 x { at 8, cost 8 } | unused 8 |
//
// A log is two payload words of its key's slot:
//   word 0:   | tail chunk 32 | head chunk 32 |                     chunk numbers; 0 is none
//   word 1:   | holes 18 | size 20 | total 20 | tail length 3 | head offset 3 |
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "algorithm/event_log.h"
#include "store/memory/pages.h"

namespace weir {

inline constexpr std::size_t kEventsPerChunk = 7;

struct alignas(128) EventChunk {
  std::uint32_t next = 0;
  std::uint32_t previous = 0;
  std::array<Event, kEventsPerChunk> events;
};

// Thread-safe.
class EventPool {
 public:
  EventPool(ByteBudget& budget, std::size_t spare_bytes) noexcept;

  // A chunk number, or 0 when the budget is used up.
  std::uint32_t Take() noexcept;
  void GiveBack(std::uint32_t chunk) noexcept;
  // Gives back every chunk of the log in `payload`.
  void GiveBackLog(std::uint64_t* payload) noexcept;

  EventChunk& At(std::uint32_t chunk) const noexcept {
    if (chunk < first_.end) [[likely]]
      return first_.chunks[chunk];
    return AtLater(chunk);
  }
  std::size_t chunks_in_use() const noexcept;

  // Sets aside addresses for so many bytes of chunks, if there are fewer: the budget's cap was
  // raised. This and the following are for one thread at a time, while others use the pool.
  void Extend(std::size_t bytes) noexcept;

  // To get along with fewer bytes: first, others are handed out a chunk only if fewer are in use
  // than there will be, or if two were given back for it.
  void StartLowering(std::size_t bytes) noexcept;
  // How many more are in use than there will be. As many have to be given back.
  std::size_t excess() const noexcept;
  // Then, while the log's slot is locked, it is moved out of those beyond: the events are as they
  // were. False if there is no chunk to move to, as there is without an excess; what was moved
  // stays so.
  bool MoveDown(std::uint64_t* payload) noexcept;
  // Gives back pages and bytes. False if some beyond are still in use: all is to be gone over
  // again.
  bool FinishLowering() noexcept;

  // Bytes are taken and given back in steps of this.
  static constexpr std::size_t kStepBytes = 512 * sizeof(EventChunk);

 private:
  // Consecutive numbers at consecutive addresses.
  struct Segment {
    Pages pages{};
    EventChunk* chunks = nullptr;  // That of number `begin`.
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  static constexpr std::size_t kMostLater = 24;  // Each doubles what there is.
  static constexpr std::uint32_t kNoCeiling = ~std::uint32_t{0};

  EventChunk& AtLater(std::uint32_t chunk) const noexcept;
  std::uint32_t TakeBelow() noexcept;  // For what moves.
  static Segment MapSegment(std::uint32_t begin, std::size_t chunks) noexcept;
  void Discard(std::uint32_t begin, std::uint32_t end) noexcept;
  // These are for the holder of the mutex.
  void Free(std::uint32_t chunk) noexcept;
  void SortSomeFree() noexcept;
  std::uint32_t TakeFree() noexcept;
  std::uint32_t in_use() const noexcept { return used_ - 1 - free_ - beyond_free_; }
  std::uint32_t beyond_in_use() const noexcept;

  ByteBudget& budget_;
  const std::size_t spare_bytes_;
  Segment first_;
  // Those who have a chunk of it have seen the segment, for it was there when the chunk was taken.
  std::array<Segment, kMostLater> later_;
  std::size_t later_made_ = 0;

  mutable std::mutex mutex_;
  std::uint32_t end_;             // Of the numbers that have addresses.
  std::uint32_t first_free_ = 0;  // Linked through `next`.
  std::uint32_t used_ = 1;        // Chunks ever handed out; number 0 is none.
  std::uint32_t taken_ = 1;       // Chunks the budget was asked for.
  std::uint32_t free_ = 0;
  // While there shall be fewer: the largest number that there will be; the free ones from before,
  // of any number; the free ones beyond, and how many; what was given back and taken since.
  std::uint32_t ceiling_ = kNoCeiling;
  std::uint32_t first_unsorted_ = 0;
  std::uint32_t first_beyond_ = 0;
  std::uint32_t beyond_free_ = 0;
  std::uint64_t given_back_ = 0;
  std::uint64_t taken_again_ = 0;
};

// One key's log, while its slot is locked: read from the payload at first, written back by Save.
class ChunkedLog final : public EventLog {
 public:
  ChunkedLog(EventPool& pool, std::uint64_t* payload) noexcept;
  ~ChunkedLog() override;
  ChunkedLog(const ChunkedLog&) = delete;
  ChunkedLog& operator=(const ChunkedLog&) = delete;

  Event* First() noexcept override;
  Event* Next(Event* event) noexcept override;
  Event* Last() noexcept override;
  bool MakeRoom() noexcept override;

  void Save() noexcept;

 private:
  void PushLast(Event event) noexcept override;
  void PopFirst() noexcept override;
  void PopLast() noexcept override;

  EventPool& pool_;
  std::uint64_t* payload_;
  std::uint32_t head_;
  std::uint32_t tail_;
  std::uint32_t head_offset_;
  std::uint32_t tail_length_;
  std::uint32_t spare_ = 0;  // Taken by MakeRoom for the next PushLast.
};

}  // namespace weir
