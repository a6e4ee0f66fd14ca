// Virtual time and what happens in it. Nothing moves but by events, one after the other, so the
// same seed gives the same run; a fingerprint of all that happened tells whether it did.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include <weir/time.h>

#include "sim/random.h"

namespace weir::sim {

// Not thread-safe; worlds do not know each other.
class World {
 public:
  explicit World(std::uint64_t seed) noexcept : random_(seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Since the beginning.
  Duration elapsed() const noexcept { return elapsed_; }
  Random& random() noexcept { return random_; }

  // Names an event until it has happened. Events of the same moment happen in the order in which
  // they were planned.
  struct EventId {
    Duration at{-1};
    std::uint64_t number = 0;
    friend auto operator<=>(const EventId&, const EventId&) = default;
  };
  EventId At(Duration when, std::function<void()> event);
  EventId After(Duration wait, std::function<void()> event) {
    return At(elapsed_ + wait, std::move(event));
  }
  // One that has happened, or none at all, does not matter.
  void Cancel(EventId id) noexcept { events_.erase(id); }

  // The next event; false if there is none.
  bool Step();
  // All events up to then, that moment included.
  void RunUntil(Duration when);
  void RunFor(Duration time) { RunUntil(elapsed_ + time); }

  // Makes what happened part of the fingerprint.
  void Note(std::uint64_t what) noexcept;
  void Note(std::string_view what) noexcept;
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  std::uint64_t events() const noexcept { return happened_; }
  std::size_t planned() const noexcept { return events_.size(); }

 private:
  Duration elapsed_{0};
  Random random_;
  std::map<EventId, std::function<void()>> events_;
  std::uint64_t next_number_ = 0;
  std::uint64_t happened_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace weir::sim
