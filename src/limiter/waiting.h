// Requests that wait for their turn. One thread serves them all: it sleeps on the limiter's clock
// until the next of them is due.
//
// A booked wait has its place already (a bucket books ahead) and only needs to be told when its
// time has come. Any other tries again when its retry-after is over or something was given back,
// and only the first in the line of its key does, so that whoever came first is served first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>

#include <weir/clock.h>
#include <weir/decision.h>
#include <weir/limiter.h>

namespace weir {

struct Wait {
  // Asks again; a wait that is not the first in its line takes nothing and is not let through. A
  // booked wait answers with what it was told.
  enum class Turn : bool { kNotYet, kNow };
  std::function<Decision(Now, Turn)> attempt;
  // Called when the wait is cancelled; may be empty.
  std::function<void(Now)> give_back;
  Limiter::WaitDone done;

  // In line with whom; none for a booked wait.
  std::optional<std::uint64_t> line;
  SteadyTime due;       // When to attempt first.
  SteadyTime deadline;  // When to give up.
};

// Thread-safe. Callbacks run without a lock held. Those still waiting when it ends are told
// `overload`.
class Waiting {
 public:
  Waiting(Clock& clock, std::size_t capacity) : clock_(clock), capacity_(capacity) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

  // True if somebody waits in this line.
  bool HasLine(std::uint64_t line) const;

  // True if nobody may be added now.
  bool IsFull() const;

  // None when too many wait already; nothing is called then.
  std::optional<WaitId> Add(Wait wait);
  bool Cancel(WaitId id);

  // Something was given back: whoever is first in a line tries again.
  void Nudge();

  std::size_t size() const;

 private:
  struct Waiter {
    Wait wait;
    SteadyTime due;
  };

  void Run();
  void Serve(std::unique_lock<std::mutex>& lock, std::uint64_t id, Now now);
  void Schedule(std::uint64_t id, Waiter& waiter, SteadyTime due);
  // Takes the waiter out, and lets the next in its line try.
  Wait Remove(std::uint64_t id, SteadyTime now);

  Clock& clock_;
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, Waiter> waiters_;
  std::set<std::pair<SteadyTime, std::uint64_t>> schedule_;  // When to look at whom.
  std::unordered_map<std::uint64_t, std::deque<std::uint64_t>> lines_;
  bool stopping_ = false;
  std::thread thread_;  // Started by the first wait.
};

}  // namespace weir
