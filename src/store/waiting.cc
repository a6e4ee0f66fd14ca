#include "store/waiting.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/mix.h"

namespace weir {
namespace {

constexpr SteadyTime kFarFuture = SteadyTime::max();

}  // namespace

Waiting::~Waiting() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  // In the order in which they came. A callback that begins another wait is refused.
  std::map<std::uint64_t, std::unique_ptr<Waiter>> left;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [id, entry] : waiters_) left.emplace(id, std::move(entry.waiter));
    waiters_.clear();
    lines_.clear();
    lines_of_.clear();
    schedule_.clear();
  }
  for (auto& [id, waiter] : left) waiter->Done({.allowed = false, .reason = Reason::kOverload});
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
  if (first == attempting_) nudged_ = true;
  Entry& entry = waiters_.at(first);
  if (entry.due > due) Schedule(first, entry, due);
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
  LeaveLine(node.mapped(), now);
  return std::move(node.mapped().waiter);
}

bool Waiting::Cancel(WaitId wait_id) {
  const auto id = static_cast<std::uint64_t>(wait_id);
  const Now now = clock_.Read();
  std::unique_lock lock(mutex_);
  if (attempts_ == Attempts::kTakeAWhile && attempting_ == id && id != 0) {
    return !std::exchange(cancelled_, true);
  }
  attempt_over_.wait(lock, [&] { return attempting_ != id || id == 0; });
  const auto found = waiters_.find(id);
  if (found == waiters_.end()) return false;
  const bool has_place = found->second.answer.has_value();
  std::unique_ptr<Waiter> waiter = Remove(id, now.steady);
  if (has_place && attempts_ == Attempts::kTakeAWhile) leaving_.push_back(std::move(waiter));
  lock.unlock();
  wake_.notify_all();
  if (has_place && waiter != nullptr) waiter->GiveBack(now);
  return true;
}

void Waiting::GiveBackOne(std::unique_lock<std::mutex>& lock, Now now) {
  const std::unique_ptr<Waiter> waiter = std::move(leaving_.back());
  leaving_.pop_back();
  lock.unlock();
  waiter->GiveBack(now);
  lock.lock();
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

void Waiting::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Now now = clock_.Read();
    if (!leaving_.empty()) {
      GiveBackOne(lock, now);
    } else if (schedule_.empty()) {
      clock_.WaitUntil(lock, wake_, kFarFuture);
    } else if (schedule_.begin()->first > now.steady) {
      clock_.WaitUntil(lock, wake_, schedule_.begin()->first);
    } else {
      Serve(lock, schedule_.begin()->second, now);
    }
  }
}

void Waiting::Serve(std::unique_lock<std::mutex>& lock, std::uint64_t id, Now now) {
  Entry& entry = waiters_.at(id);
  std::optional<Decision> answer = entry.answer;
  if (!answer) answer = Attempt(lock, id, entry, now);
  if (!answer) return;
  const std::unique_ptr<Waiter> waiter = Remove(id, now.steady);
  lock.unlock();
  waiter->Done(*answer);
  lock.lock();
}

std::optional<Decision> Waiting::Attempt(std::unique_lock<std::mutex>& lock, std::uint64_t id,
                                         Entry& entry, Now now) {
  const bool first = entry.line->second.ids.front() == id;
  const Duration patience = std::max(entry.deadline - now.steady, Duration(0));
  if (!first && patience > Duration(0)) {
    // Somebody who came earlier has joined the line since.
    Schedule(id, entry, entry.deadline);
    return std::nullopt;
  }
  attempting_ = id;
  nudged_ = false;
  cancelled_ = false;
  lock.unlock();
  const auto [decision, again, keys] =
      entry.waiter->Attempt(now, first ? Waiter::Turn::kNow : Waiter::Turn::kNotYet, patience);
  lock.lock();
  attempting_ = 0;
  attempt_over_.notify_all();
  if (cancelled_) {
    std::unique_ptr<Waiter> waiter = Remove(id, now.steady);
    if (decision.allowed) leaving_.push_back(std::move(waiter));
    return std::nullopt;
  }

  if (decision.allowed && decision.delay > Duration(0)) {
    LeaveLine(entry, now.steady);
    Decision answer = decision;
    answer.delay = Duration(0);
    entry.answer = answer;
    Schedule(id, entry, now.steady + decision.delay);
    return std::nullopt;
  }
  if (first && again && patience > Duration(0)) {
    const Duration pause = std::max(decision.retry_after, Duration(1));
    SteadyTime due = pause > patience ? entry.deadline : now.steady + pause;
    // What was given back during the attempt may have come too late for it.
    if (nudged_) due = now.steady;
    if (!keys.empty() && NumberOf(keys) != entry.line->first) {
      LeaveLine(entry, now.steady);
      // Tries once more there: nobody could tell it what these keys got back meanwhile.
      due = JoinLine(id, entry, keys) ? now.steady : entry.deadline;
    }
    Schedule(id, entry, due);
    return std::nullopt;
  }
  return decision;
}

}  // namespace weir
