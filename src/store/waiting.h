// Requests that wait for their turn. One thread serves them all: it sleeps on the clock until the
// next of them is due.
//
// A wait that has its place already (a bucket books ahead) is only held back until its time has
// come. Any other tries again when its retry-after is over or something was given back to one of
// its keys, and only the first in the line of its keys does, so that whoever came first is served
// first. Where an attempt takes a while it is only begun here, and many are under way at a time: no
// waiter is told late because the question of another hangs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
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

namespace weir {

// One of them, as it is served. Called by one thread at a time, without a lock held.
class Waiter {
 public:
  // A wait that is not the first in its line takes nothing and is not let through.
  enum class Turn : bool { kNotYet, kNow };

  // One attempt: ready to go ahead up to `patience` later. One that is let through with a delay has
  // its place, and is held back for so long.
  struct Chance {
    Now now{};
    Turn turn = Turn::kNow;
    Duration patience{0};
    WaitId id{};
  };

  // What an attempt heard, for others in the same line. All who wait in one place know the same
  // kind.
  struct Heard {
    virtual ~Heard() = default;
  };

  struct Answer {
    Decision decision{};
    bool again = false;  // Denied, but time or others may change that.
    // Whose line it belongs to, if that may have changed; as given to StandInLine. There it goes on
    // in the order in which all of them came. Read before the next call.
    std::span<const std::uint64_t> keys{};
    // If what is missing may come back before the retry-after is over, and nobody here would hear
    // of it: then it is asked for now and then, but not before so long.
    std::optional<Duration> not_before{};
    std::shared_ptr<const Heard> heard{};
  };

  virtual ~Waiter() = default;

  // Asks. One that takes a while returns none: AttemptReports::Over tells when Outcome is there.
  virtual std::optional<Answer> Attempt(const Chance& chance) = 0;
  virtual Answer Outcome() { return {}; }
  // What to be told when its time is over, by what was heard so long ago and without asking
  // anybody; it is told that. None if it insists on asking.
  virtual std::optional<Decision> GiveUp(Now /*now*/, const Heard& /*heard*/, Duration /*age*/) {
    return std::nullopt;
  }
  // Gives back what the attempt took that was let through. Where that takes a while it is only
  // begun.
  virtual void GiveBack(Now now) = 0;
  virtual void Done(const Decision& decision) = 0;
};

class Waiting;

// Whom those tell who are asked elsewhere and take a while. Thread-safe; stays good when waiting
// has ended.
class AttemptReports {
 public:
  // The attempt has an outcome. False if nobody wants it any more: what it took must go back.
  bool Over(WaitId id);
  // As Waiting::Nudge.
  void Nudge(std::span<const std::uint64_t> keys);

 private:
  friend class Waiting;

  std::mutex mutex_;
  Waiting* waiting_ = nullptr;  // Under the mutex. None once it has ended.
};

// Thread-safe. Those still waiting when it ends are told `overload`, whatever is under way.
class Waiting {
 public:
  // What it takes to ask, or to give back. If it takes a while nobody ever waits for it.
  enum class Attempts : bool { kAtOnce, kTakeAWhile };
  // How many of those that take a while may be under way, because each takes some room. The others
  // stand by.
  static constexpr std::size_t kMostAttempts = 512;

  Waiting(Clock& clock, std::size_t capacity, Attempts attempts = Attempts::kAtOnce,
          std::size_t most_attempts = kMostAttempts);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

  // True if somebody waits in the line of these keys.
  bool HasLine(std::span<const std::uint64_t> keys) const;
  // How many may wait from now on; those who do stay.
  void SetCapacity(std::size_t capacity);
  // For attempts from now on, as the constructor has it.
  void SetAttempts(Attempts attempts, std::size_t most);
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
  const std::shared_ptr<AttemptReports>& reports() const noexcept { return reports_; }

 private:
  friend class AttemptReports;

  struct Line {
    std::vector<std::uint64_t> keys;
    std::list<std::uint64_t> ids;  // In the order in which they came.
    struct News {
      std::shared_ptr<const Waiter::Heard> heard;
      SteadyTime at;
    };
    std::unique_ptr<const News> news{};  // What the last of them heard, if any did.
  };
  using Lines = std::unordered_map<std::uint64_t, Line>;
  struct Entry {
    std::unique_ptr<Waiter> waiter;
    SteadyTime due;  // During an attempt: when that began.
    SteadyTime deadline;
    Lines::value_type* line = nullptr;  // None for one that has its place.
    std::list<std::uint64_t>::iterator place{};
    std::optional<Decision> answer{};  // What it will be told at `due`.

    // Attempts are made without the lock, so that the others get in between them. While it is at
    // it, it is not to be taken out, and has no place in the schedule.
    bool attempting = false;
    bool takes_a_while = false;  // The attempt was begun, and its outcome is yet to come.
    bool is_first = false;       // In its line, when it began.
    bool nudged = false;         // Whether it should try again as soon as it is done.
    bool cancelled = false;      // Whether it is wanted no more.
  };
  using Lock = std::unique_lock<std::mutex>;

  static std::uint64_t NumberOf(std::span<const std::uint64_t> keys) noexcept;
  WaitId Add(Entry entry, std::span<const std::uint64_t> keys);
  // Takes its place among those who came before and after. True if it is the first.
  bool JoinLine(std::uint64_t id, Entry& entry, std::span<const std::uint64_t> keys);
  void Run();
  void Serve(Lock& lock, std::uint64_t id, Now now);
  void Attempt(Lock& lock, std::uint64_t id, Entry& entry, const Waiter::Chance& chance);
  void Report(WaitId id);
  void TakeOutcome(Lock& lock, Now now);
  void TakeIn(Lock& lock, std::uint64_t id, Entry& entry, Now now, const Waiter::Answer& answer);
  void TryLater(Lock& lock, std::uint64_t id, Entry& entry, Now now, const Waiter::Answer& answer);
  // True if it was told.
  bool GiveUp(Lock& lock, std::uint64_t id, Entry& entry, Now now);
  void StandBy(std::uint64_t id, Entry& entry, SteadyTime now);
  void Tell(Lock& lock, std::uint64_t id, Decision decision, Now now);
  Duration PauseAfter(const Waiter::Answer& answer) noexcept;
  void Schedule(std::uint64_t id, Entry& entry, SteadyTime due);
  void ScheduleFirst(const Line& line, SteadyTime due);
  // Lets the next in line try.
  void LeaveLine(Entry& entry, SteadyTime now);
  std::unique_ptr<Waiter> Remove(std::uint64_t id, SteadyTime now);

  Clock& clock_;
  std::size_t capacity_;
  Attempts attempts_;          // Under the mutex,
  std::size_t most_attempts_;  // likewise.
  const std::shared_ptr<AttemptReports> reports_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, Entry> waiters_;
  std::set<std::pair<SteadyTime, std::uint64_t>> schedule_;  // When to look at whom.
  Lines lines_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> lines_of_;  // By key.
  bool stopping_ = false;

  std::condition_variable attempt_over_;
  std::deque<std::uint64_t> over_;    // Whose outcome is there.
  std::size_t under_way_ = 0;         // Attempts that take a while.
  std::set<std::uint64_t> stand_by_;  // Who would try if fewer were under way.
  std::uint64_t dice_;                // So that not all processes ask at the same time.

  std::thread thread_;  // Started by the first wait.
};

}  // namespace weir
