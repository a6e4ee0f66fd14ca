#include "store/waiting.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>

#include "base/mix.h"

namespace weir {
namespace {

constexpr SteadyTime kFarFuture = SteadyTime::max();

// How often to ask for what may come back at any time; and how many questions a second that may
// make, however many lines there are.
constexpr Duration kLongestAskPause = std::chrono::milliseconds(100);
constexpr Duration kPausePerLine = std::chrono::microseconds(100);

}  // namespace

bool AttemptReports::Over(WaitId id) {
  const std::scoped_lock lock(mutex_);
  if (waiting_ == nullptr) return false;
  waiting_->Report(id);
  return true;
}

void AttemptReports::Nudge(std::span<const std::uint64_t> keys) {
  const std::scoped_lock lock(mutex_);
  if (waiting_ != nullptr) waiting_->Nudge(keys);
}

Waiting::Waiting(Clock& clock, std::size_t capacity, Attempts attempts, std::size_t most_attempts)
    : clock_(clock),
      capacity_(capacity),
      attempts_(attempts),
      most_attempts_(most_attempts),
      reports_(std::make_shared<AttemptReports>()),
      dice_(static_cast<std::uint64_t>(clock.Read().wall.time_since_epoch().count())) {
  reports_->waiting_ = this;
}

Waiting::~Waiting() {
  {
    const std::scoped_lock lock(reports_->mutex_);
    reports_->waiting_ = nullptr;
  }
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  // In the order in which they came. A callback that begins another wait is refused.
  std::map<std::uint64_t, Entry> left;
  std::set<std::uint64_t> over;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [id, entry] : waiters_) left.emplace(id, std::move(entry));
    over.insert(over_.begin(), over_.end());
    waiters_.clear();
    lines_.clear();
    lines_of_.clear();
    schedule_.clear();
  }
  const Now now = clock_.Read();
  // The last first, because of those who have booked only the last can give back.
  for (auto& [id, entry] : std::views::reverse(left)) {
    const bool has_its_place = entry.answer && entry.answer->allowed;
    // Nobody has looked at this outcome, and nobody will.
    const bool took = over.contains(id) && entry.waiter->Outcome().decision.allowed;
    if (has_its_place || took) entry.waiter->GiveBack(now);
  }
  for (auto& [id, entry] : left) {
    if (entry.cancelled) continue;
    entry.waiter->Done({.allowed = false, .reason = Reason::kOverload});
  }
}

std::uint64_t Waiting::NumberOf(std::span<const std::uint64_t> keys) noexcept {
  std::uint64_t number = 0;
  for (const std::uint64_t key : keys) number = Mix(number ^ key);
  return number;
}

bool Waiting::HasLine(std::span<const std::uint64_t> keys) const {
  const std::scoped_lock lock(mutex_);
  return lines_.contains(NumberOf(keys));
}

std::size_t Waiting::size() const {
  const std::scoped_lock lock(mutex_);
  return waiters_.size();
}

void Waiting::SetCapacity(std::size_t capacity) {
  const std::scoped_lock lock(mutex_);
  capacity_ = capacity;
}

void Waiting::SetAttempts(Attempts attempts, std::size_t most) {
  const std::scoped_lock lock(mutex_);
  attempts_ = attempts;
  most_attempts_ = most;
}

bool Waiting::IsFull() const {
  const std::scoped_lock lock(mutex_);
  return stopping_ || waiters_.size() >= capacity_;
}

bool Waiting::IsServing() const {
  const std::scoped_lock lock(mutex_);
  return thread_.get_id() == std::this_thread::get_id();
}

std::optional<WaitId> Waiting::Hold(std::unique_ptr<Waiter>& waiter, const Decision& answer,
                                    SteadyTime due) {
  const std::scoped_lock lock(mutex_);
  if (stopping_ || waiters_.size() >= capacity_) return std::nullopt;
  return Add({.waiter = std::move(waiter), .due = due, .deadline = due, .answer = answer}, {});
}

std::optional<WaitId> Waiting::StandInLine(std::unique_ptr<Waiter>& waiter,
                                           std::span<const std::uint64_t> keys, SteadyTime now,
                                           SteadyTime deadline) {
  const std::scoped_lock lock(mutex_);
  if (stopping_ || waiters_.size() >= capacity_) return std::nullopt;
  return Add({.waiter = std::move(waiter), .due = now, .deadline = deadline}, keys);
}

WaitId Waiting::Add(Entry entry, std::span<const std::uint64_t> keys) {
  const std::uint64_t id = ++last_id_;
  if (!entry.answer && !JoinLine(id, entry, keys)) {
    entry.due = entry.deadline;  // Until those ahead are through.
  }
  schedule_.insert({entry.due, id});
  waiters_.emplace(id, std::move(entry));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
  return WaitId{id};
}

bool Waiting::JoinLine(std::uint64_t id, Entry& entry, std::span<const std::uint64_t> keys) {
  const std::uint64_t number = NumberOf(keys);
  const auto [found, is_new] = lines_.try_emplace(number);
  Line& line = found->second;
  if (is_new) {
    line.keys.assign(keys.begin(), keys.end());
    for (const std::uint64_t key : keys) lines_of_.emplace(key, number);
  }
  auto behind = line.ids.end();
  while (behind != line.ids.begin() && *std::prev(behind) > id) --behind;
  entry.line = &*found;
  entry.place = line.ids.insert(behind, id);
  return entry.place == line.ids.begin();
}

void Waiting::Schedule(std::uint64_t id, Entry& entry, SteadyTime due) {
  schedule_.erase({entry.due, id});
  entry.due = due;
  schedule_.insert({due, id});
}

void Waiting::ScheduleFirst(const Line& line, SteadyTime due) {
  const std::uint64_t first = line.ids.front();
  Entry& entry = waiters_.at(first);
  if (entry.attempting) {
    entry.nudged = true;
  } else if (entry.due > due) {
    Schedule(first, entry, due);
  }
}

void Waiting::LeaveLine(Entry& entry, SteadyTime now) {
  if (entry.line == nullptr) return;
  auto& [number, line] = *std::exchange(entry.line, nullptr);
  const bool was_first = entry.place == line.ids.begin();
  line.ids.erase(entry.place);
  if (line.ids.empty()) {
    for (const std::uint64_t key : line.keys) lines_of_.erase({key, number});
    lines_.erase(lines_.find(number));
  } else if (was_first) {
    ScheduleFirst(line, now);
  }
}

std::unique_ptr<Waiter> Waiting::Remove(std::uint64_t id, SteadyTime now) {
  auto node = waiters_.extract(id);
  schedule_.erase({node.mapped().due, id});
  stand_by_.erase(id);
  LeaveLine(node.mapped(), now);
  return std::move(node.mapped().waiter);
}

bool Waiting::Cancel(WaitId wait_id) {
  const auto id = static_cast<std::uint64_t>(wait_id);
  const Now now = clock_.Read();
  std::unique_lock lock(mutex_);
  auto found = waiters_.find(id);
  attempt_over_.wait(lock, [&] {
    found = waiters_.find(id);
    return found == waiters_.end() || !found->second.attempting || found->second.takes_a_while;
  });
  if (found == waiters_.end() || found->second.cancelled) return false;
  Entry& entry = found->second;
  const bool has_place = entry.answer.has_value();
  std::unique_ptr<Waiter> waiter;
  if (entry.attempting) {
    // It goes when that is over; those behind do not wait for it.
    entry.cancelled = true;
    LeaveLine(entry, now.steady);
  } else {
    waiter = Remove(id, now.steady);
  }
  lock.unlock();
  wake_.notify_all();
  if (has_place) waiter->GiveBack(now);
  return true;
}

void Waiting::Nudge(std::span<const std::uint64_t> keys) {
  {
    const std::scoped_lock lock(mutex_);
    if (lines_.empty()) return;
    const SteadyTime now = clock_.Read().steady;
    for (const std::uint64_t key : keys) {
      for (auto it = lines_of_.lower_bound({key, 0}); it != lines_of_.end() && it->first == key;
           ++it) {
        ScheduleFirst(lines_.at(it->second), now);
      }
    }
  }
  wake_.notify_all();
}

void Waiting::NudgeAll() {
  {
    const std::scoped_lock lock(mutex_);
    const SteadyTime now = clock_.Read().steady;
    for (const auto& [number, line] : lines_) ScheduleFirst(line, now);
  }
  wake_.notify_all();
}

void Waiting::Report(WaitId id) {
  {
    const std::scoped_lock lock(mutex_);
    over_.push_back(static_cast<std::uint64_t>(id));
  }
  wake_.notify_all();
}

void Waiting::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Now now = clock_.Read();
    const SteadyTime next = schedule_.empty() ? kFarFuture : schedule_.begin()->first;
    // Those who wait for room come last: whoever's answer is known is told first.
    if (!over_.empty()) {
      TakeOutcome(lock, now);
    } else if (next <= now.steady) {
      Serve(lock, schedule_.begin()->second, now);
    } else if (!stand_by_.empty() && under_way_ < most_attempts_) {
      const std::uint64_t id = *stand_by_.begin();
      stand_by_.erase(stand_by_.begin());
      Serve(lock, id, now);
    } else {
      clock_.WaitUntil(lock, wake_, next);
    }
  }
}

// By value: it may be kept in what is taken out here.
void Waiting::Tell(Lock& lock, std::uint64_t id, Decision decision, Now now) {
  std::unique_ptr<Waiter> waiter = Remove(id, now.steady);
  lock.unlock();
  waiter->Done(decision);
  waiter.reset();
  lock.lock();
}

void Waiting::Serve(Lock& lock, std::uint64_t id, Now now) {
  Entry& entry = waiters_.at(id);
  if (entry.answer) return Tell(lock, id, *entry.answer, now);
  const bool first = entry.line->second.ids.front() == id;
  const Duration patience = std::max(entry.deadline - now.steady, Duration(0));
  if (!first && patience > Duration(0)) {
    // Somebody who came earlier has joined the line since.
    return Schedule(id, entry, entry.deadline);
  }
  if (attempts_ == Attempts::kTakeAWhile) {
    const bool none_left = under_way_ >= most_attempts_;
    // There is nothing for one who stands behind others, whatever the answer.
    const bool need_not_ask = patience == Duration(0) && (!first || none_left);
    if (need_not_ask && GiveUp(lock, id, entry, now)) return;
    if (none_left) return StandBy(id, entry, now.steady);
  }
  Attempt(lock, id, entry,
          {.now = now,
           .turn = first ? Waiter::Turn::kNow : Waiter::Turn::kNotYet,
           .patience = patience,
           .id = WaitId{id}});
}

void Waiting::StandBy(std::uint64_t id, Entry& entry, SteadyTime now) {
  stand_by_.insert(id);
  Schedule(id, entry, entry.deadline);
  if (entry.deadline <= now) schedule_.erase({entry.due, id});
}

void Waiting::Attempt(Lock& lock, std::uint64_t id, Entry& entry, const Waiter::Chance& chance) {
  schedule_.erase({entry.due, id});
  stand_by_.erase(id);
  entry.attempting = true;
  entry.nudged = false;
  entry.is_first = chance.turn == Waiter::Turn::kNow;
  entry.due = chance.now.steady;
  ++under_way_;
  lock.unlock();
  const std::optional<Waiter::Answer> answer = entry.waiter->Attempt(chance);
  lock.lock();
  if (answer) return TakeIn(lock, id, entry, chance.now, *answer);
  entry.takes_a_while = true;
  attempt_over_.notify_all();
}

void Waiting::TakeOutcome(Lock& lock, Now now) {
  const std::uint64_t id = over_.front();
  over_.pop_front();
  Entry& entry = waiters_.at(id);
  lock.unlock();
  const Waiter::Answer answer = entry.waiter->Outcome();
  lock.lock();
  TakeIn(lock, id, entry, now, answer);
}

void Waiting::TakeIn(Lock& lock, std::uint64_t id, Entry& entry, Now now,
                     const Waiter::Answer& answer) {
  --under_way_;
  entry.attempting = false;
  entry.takes_a_while = false;
  attempt_over_.notify_all();
  const Decision& decision = answer.decision;
  if (entry.cancelled) {
    std::unique_ptr<Waiter> waiter = Remove(id, now.steady);
    lock.unlock();
    if (decision.allowed) waiter->GiveBack(now);
    waiter.reset();
    lock.lock();
    return;
  }
  if (answer.heard != nullptr) {
    entry.line->second.news = std::make_unique<Line::News>(answer.heard, now.steady);
  }
  if (decision.allowed && decision.delay > Duration(0)) {
    LeaveLine(entry, now.steady);
    entry.answer = decision;
    entry.answer->delay = Duration(0);
    return Schedule(id, entry, entry.due + decision.delay);
  }
  const bool goes_on = answer.again && entry.is_first && entry.deadline > entry.due;
  if (goes_on) return TryLater(lock, id, entry, now, answer);
  Tell(lock, id, decision, now);
}

void Waiting::TryLater(Lock& lock, std::uint64_t id, Entry& entry, Now now,
                       const Waiter::Answer& answer) {
  if (!answer.keys.empty() && NumberOf(answer.keys) != entry.line->first) {
    LeaveLine(entry, now.steady);
    // Tries once more there: nobody could tell it what these keys got back meanwhile.
    return Schedule(id, entry, JoinLine(id, entry, answer.keys) ? now.steady : entry.deadline);
  }
  // What was given back during the attempt may have come too late for it.
  if (entry.nudged) return Schedule(id, entry, now.steady);
  const bool too_late = entry.deadline <= now.steady && answer.heard != nullptr;
  if (too_late && GiveUp(lock, id, entry, now)) return;
  const Duration pause = PauseAfter(answer);
  const Duration patience = std::max(entry.deadline - now.steady, Duration(0));
  Schedule(id, entry, pause > patience ? entry.deadline : now.steady + pause);
}

Duration Waiting::PauseAfter(const Waiter::Answer& answer) noexcept {
  const Duration pause = std::max(answer.decision.retry_after, Duration(1));
  if (!answer.not_before) return pause;
  const Duration longest =
      std::max(kLongestAskPause, kPausePerLine * static_cast<std::int64_t>(lines_.size()));
  const Duration spread(
      static_cast<std::int64_t>(Mix(dice_++) % static_cast<std::uint64_t>(longest.count() / 4)));
  return std::min(pause, std::max(*answer.not_before, longest - spread));
}

bool Waiting::GiveUp(Lock& lock, std::uint64_t id, Entry& entry, Now now) {
  if (entry.line->second.news == nullptr) return false;
  const Line::News news = *entry.line->second.news;
  entry.attempting = true;
  lock.unlock();
  const std::optional<Decision> decision =
      entry.waiter->GiveUp(now, *news.heard, now.steady - news.at);
  lock.lock();
  entry.attempting = false;
  if (entry.cancelled) {
    std::unique_ptr<Waiter> waiter = Remove(id, now.steady);
    lock.unlock();
    waiter.reset();
    lock.lock();
    return true;
  }
  if (!decision) return false;
  Tell(lock, id, *decision, now);
  return true;
}

}  // namespace weir
