// The list of dated costs that the sliding log and the concurrency limit keep: oldest first.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ticks.h"

namespace weir {

struct Event {
  Ticks at{0};
  std::int64_t cost = 0;  // 0 once given back: a hole, skipped until it is swept.
};

// Owned by one key and touched by one thread at a time. Pointers stay good until the next change.
// The base class keeps the books; a store brings the memory.
class EventLog {
 public:
  virtual ~EventLog() = default;

  virtual Event* First() noexcept = 0;             // The oldest, or null.
  virtual Event* Next(Event* event) noexcept = 0;  // The one after, or null.
  virtual Event* Last() noexcept = 0;              // The newest, or null.

  // Makes sure that one more event can be appended; false when there is no memory for it.
  virtual bool MakeRoom() noexcept = 0;

  std::int64_t total() const noexcept { return total_; }
  std::int64_t size() const noexcept { return size_; }  // Holes included.

  // Only after MakeRoom.
  void Append(Event event) noexcept {
    PushLast(event);
    total_ += event.cost;
    ++size_;
  }

  void DropFirst() noexcept {
    const Event* first = First();
    total_ -= first->cost;
    if (first->cost == 0) --holes_;
    --size_;
    PopFirst();
  }

  // Adds `by`, which may be negative, to an event's cost; never below nothing.
  void Change(Event& event, std::int64_t by) noexcept {
    const std::int64_t after = std::max<std::int64_t>(0, event.cost + by);
    if (event.cost != 0 && after == 0) ++holes_;
    if (event.cost == 0 && after != 0) --holes_;
    total_ += after - event.cost;
    event.cost = after;
  }

  void Clear() noexcept {
    while (size_ > 0) DropFirst();
  }

  // Drops holes at the end, so that the last event is one that counts, and sweeps the others once
  // they are most of the list: its length stays in proportion to what counts, at a constant cost
  // per change.
  void Tidy() noexcept {
    for (Event* last = Last(); last != nullptr && last->cost == 0; last = Last()) DropHoleAtEnd();
    if (holes_ <= 8 || holes_ <= size_ / 2) return;
    Event* kept = First();
    for (Event* event = First(); event != nullptr; event = Next(event)) {
      if (event->cost == 0) continue;
      *kept = *event;
      kept = Next(kept);
    }
    while (holes_ > 0) DropHoleAtEnd();
  }

 protected:
  virtual void PushLast(Event event) noexcept = 0;
  virtual void PopFirst() noexcept = 0;
  virtual void PopLast() noexcept = 0;

  std::int64_t total_ = 0;
  std::int64_t size_ = 0;
  std::int64_t holes_ = 0;

 private:
  void DropHoleAtEnd() noexcept {
    PopLast();
    --holes_;
    --size_;
  }
};

}  // namespace weir
