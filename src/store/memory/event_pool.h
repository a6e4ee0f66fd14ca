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

  EventChunk& At(std::uint32_t chunk) const noexcept { return chunks_[chunk]; }
  std::size_t chunks_in_use() const noexcept;

 private:
  ByteBudget& budget_;
  const std::size_t spare_bytes_;
  Pages pages_;
  EventChunk* chunks_;
  mutable std::mutex mutex_;
  std::uint32_t first_free_ = 0;  // Linked through `next`.
  std::uint32_t used_ = 1;        // Chunks ever handed out; number 0 is none.
  std::uint32_t taken_ = 1;       // Chunks the budget was asked for.
  std::uint32_t free_ = 0;
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
