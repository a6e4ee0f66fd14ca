// An event log on a std::deque, for tests: as much memory as it likes, or as little as it is given.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>

#include "algorithm/event_log.h"

namespace weir {

class DequeLog final : public EventLog {
 public:
  explicit DequeLog(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_(most) {}

  Event* First() noexcept override { return events_.empty() ? nullptr : &events_.front(); }
  Event* Last() noexcept override { return events_.empty() ? nullptr : &events_.back(); }
  Event* Next(Event* event) noexcept override {
    const std::size_t next = IndexOf(event) + 1;
    return next < events_.size() ? &events_[next] : nullptr;
  }
  bool MakeRoom() noexcept override { return events_.size() < most_; }

  const std::deque<Event>& events() const { return events_; }

 protected:
  void PushLast(Event event) noexcept override { events_.push_back(event); }
  void PopFirst() noexcept override { events_.pop_front(); }
  void PopLast() noexcept override { events_.pop_back(); }

 private:
  // Walking is mostly from one to the next, so the last answer is a good first guess.
  std::size_t IndexOf(const Event* event) noexcept {
    for (std::size_t tried = 0; tried < events_.size(); ++tried, ++guess_) {
      if (guess_ >= events_.size()) guess_ = 0;
      if (&events_[guess_] == event) return guess_;
    }
    return events_.size();
  }

  std::size_t most_;
  std::size_t guess_ = 0;
  std::deque<Event> events_;
};

}  // namespace weir
