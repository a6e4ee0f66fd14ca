// Requests that wait for their turn. One thread serves them all: it sleeps on the clock until the
// next of them is due.
//
// A wait that has its place already (a bucket books ahead) is only held back until its time has
// come. Any other tries again when its retry-after is over or something was given back to one of
// its keys, and only the first in the line of its keys does, so that whoever came first is served
// first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weir/clock.h>
#include <weir/decision.h>
#include <weir/limiter.h>

#include "base/inline_vector.h"
#include "store/store.h"

namespace weir {

// The identities of the keys of a request.
using KeyHashes = InlineVector<std::uint64_t, kMaxGroupCharges>;

// One of them, as it is served. Called by one thread at a time, without a lock held.
class Waiter {
 public:
  // A wait that is not the first in its line takes nothing and is not let through.
  enum class Turn : bool { kNotYet, kNow };

  struct Answer {
    Decision decision{};
    bool again = false;  // Denied, but time or others may change that.
    // Whose line it belongs to, if that may have changed; as given to StandInLine. There it goes on
    // in the order in which all of them came. Read before the next call.
    std::span<const std::uint64_t> keys{};
  };

  virtual ~Waiter() = default;

  // Asks, ready to go ahead up to `patience` later: one that is let through with a delay has its
  // place, and is held back for so long.
  virtual Answer Attempt(Now now, Turn turn, Duration patience) = 0;
  // Gives back what the attempt took that was let through.
  virtual void GiveBack(Now now) = 0;
  virtual void Done(const Decision& decision) = 0;
};

// Thread-safe. Those still waiting when it ends are told `overload`.
class Waiting {
 public:
  // What it takes to ask, or to give back. If it takes a while it is left to the thread that serves
  // waits, and nobody else ever waits for it.
  enum class Attempts : bool { kAtOnce, kTakeAWhile };

  Waiting(Clock& clock, std::size_t capacity, Attempts attempts = Attempts::kAtOnce)
      : clock_(clock), capacity_(capacity), attempts_(attempts) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

  // True if somebody waits in the line of these keys.
  bool HasLine(std::span<const std::uint64_t> keys) const;
  // How many may wait from now on; those who do stay.
  void SetCapacity(std::size_t capacity);
  // True if nobody may be added now.
  bool IsFull() const;
  // True on the thread that serves waits. Were it to wait for one of them, that would be for ever.
  bool IsServing() const;

  // Both add a waiter, or return none when too many wait already: it is the caller's then, and
  // nothing was called.
  // One that has its place, and is told `answer` at `due`.
  std::optional<WaitId> Hold(std::unique_ptr<Waiter>& waiter, const Decision& answer,
                             SteadyTime due);
  // One that stands in line, tries first at `now` and gives up at `deadline`.
  std::optional<WaitId> StandInLine(std::unique_ptr<Waiter>& waiter,
                                    std::span<const std::uint64_t> keys, SteadyTime now,
                                    SteadyTime deadline);
  // Takes the wait out, and gives back what it had.
  bool Cancel(WaitId id);

  // Something was given back to these keys: whoever is first in a line with one of them tries
  // again.
  void Nudge(std::span<const std::uint64_t> keys);
  void NudgeAll();

  std::size_t size() const;

 private:
  struct Line {
    std::vector<std::uint64_t> keys;
    std::list<std::uint64_t> ids;  // In the order in which they came.
  };
  using Lines = std::unordered_map<std::uint64_t, Line>;
  struct Entry {
    std::unique_ptr<Waiter> waiter;
    SteadyTime due;
    SteadyTime deadline;
    Lines::value_type* line = nullptr;  // None for one that has its place.
    std::list<std::uint64_t>::iterator place{};
    std::optional<Decision> answer{};  // What it will be told at `due`.
  };

  static std::uint64_t NumberOf(std::span<const std::uint64_t> keys) noexcept;
  void GiveBackOne(std::unique_lock<std::mutex>& lock, Now now);
  WaitId Add(Entry entry, std::span<const std::uint64_t> keys);
  // Takes its place among those who came before and after. True if it is the first.
  bool JoinLine(std::uint64_t id, Entry& entry, std::span<const std::uint64_t> keys);
  void Run();
  void Serve(std::unique_lock<std::mutex>& lock, std::uint64_t id, Now now);
  // What the waiter is to be told; none if it goes on waiting.
  std::optional<Decision> Attempt(std::unique_lock<std::mutex>& lock, std::uint64_t id,
                                  Entry& entry, Now now);
  void Schedule(std::uint64_t id, Entry& entry, SteadyTime due);
  void ScheduleFirst(const Line& line, SteadyTime due);
  // Lets the next in line try.
  void LeaveLine(Entry& entry, SteadyTime now);
  std::unique_ptr<Waiter> Remove(std::uint64_t id, SteadyTime now);

  Clock& clock_;
  std::size_t capacity_;
  const Attempts attempts_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, Entry> waiters_;
  std::set<std::pair<SteadyTime, std::uint64_t>> schedule_;  // When to look at whom.
  Lines lines_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> lines_of_;  // By key.
  bool stopping_ = false;

  // Attempts are made without the lock, so that the others get in between them.
  std::uint64_t attempting_ = 0;  // Who is at it; not to be taken out meanwhile.
  bool nudged_ = false;           // Whether it should try again as soon as it is done.
  bool cancelled_ = false;        // Whether it is wanted no more.
  std::vector<std::unique_ptr<Waiter>> leaving_;  // Cancelled, with a place to give back.
  std::condition_variable attempt_over_;

  std::thread thread_;  // Started by the first wait.
};

}  // namespace weir
