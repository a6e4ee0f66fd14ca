#include "limiter/waiting.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

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
  std::map<std::uint64_t, Wait> left;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [id, waiter] : waiters_) left.emplace(id, std::move(waiter.wait));
    waiters_.clear();
    lines_.clear();
    schedule_.clear();
  }
  for (auto& [id, wait] : left) wait.done({.allowed = false, .reason = Reason::kOverload});
}

bool Waiting::HasLine(std::uint64_t line) const {
  const std::scoped_lock lock(mutex_);
  return lines_.contains(line);
}

std::size_t Waiting::size() const {
  const std::scoped_lock lock(mutex_);
  return waiters_.size();
}

bool Waiting::IsFull() const {
  const std::scoped_lock lock(mutex_);
  return stopping_ || waiters_.size() >= capacity_;
}

std::optional<WaitId> Waiting::Add(Wait wait) {
  const std::scoped_lock lock(mutex_);
  if (stopping_ || waiters_.size() >= capacity_) return std::nullopt;
  const std::uint64_t id = ++last_id_;
  SteadyTime due = wait.due;
  if (wait.line) {
    std::deque<std::uint64_t>& line = lines_[*wait.line];
    if (!line.empty()) due = wait.deadline;  // Until those ahead are through.
    line.push_back(id);
  }
  Waiter& waiter = waiters_.emplace(id, Waiter{std::move(wait), kFarFuture}).first->second;
  Schedule(id, waiter, due);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
  return WaitId{id};
}

void Waiting::Schedule(std::uint64_t id, Waiter& waiter, SteadyTime due) {
  schedule_.erase({waiter.due, id});
  waiter.due = due;
  schedule_.insert({due, id});
}

Wait Waiting::Remove(std::uint64_t id, SteadyTime now) {
  auto node = waiters_.extract(id);
  Waiter& waiter = node.mapped();
  schedule_.erase({waiter.due, id});
  if (waiter.wait.line) {
    const auto line = lines_.find(*waiter.wait.line);
    std::erase(line->second, id);
    if (line->second.empty()) {
      lines_.erase(line);
    } else {
      const std::uint64_t next = line->second.front();
      Schedule(next, waiters_.at(next), now);
    }
  }
  return std::move(waiter.wait);
}

bool Waiting::Cancel(WaitId id) {
  const Now now = clock_.Read();
  Wait wait;
  {
    const std::scoped_lock lock(mutex_);
    if (!waiters_.contains(static_cast<std::uint64_t>(id))) return false;
    wait = Remove(static_cast<std::uint64_t>(id), now.steady);
  }
  wake_.notify_all();
  if (wait.give_back) wait.give_back(now);
  return true;
}

void Waiting::Nudge() {
  {
    const std::scoped_lock lock(mutex_);
    if (lines_.empty()) return;
    const SteadyTime now = clock_.Read().steady;
    for (auto& [line, ids] : lines_) Schedule(ids.front(), waiters_.at(ids.front()), now);
  }
  wake_.notify_all();
}

void Waiting::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Now now = clock_.Read();
    if (schedule_.empty()) {
      clock_.WaitUntil(lock, wake_, kFarFuture);
    } else if (schedule_.begin()->first > now.steady) {
      clock_.WaitUntil(lock, wake_, schedule_.begin()->first);
    } else {
      Serve(lock, schedule_.begin()->second, now);
    }
  }
}

// The lock is held during the attempt, so that nothing given back meanwhile goes unnoticed, and let
// go for the callback.
void Waiting::Serve(std::unique_lock<std::mutex>& lock, std::uint64_t id, Now now) {
  Waiter& waiter = waiters_.at(id);
  const bool first = !waiter.wait.line || lines_.at(*waiter.wait.line).front() == id;
  const bool late = now.steady >= waiter.wait.deadline;
  // Those behind the first are woken only by their deadline.
  const Decision decision =
      waiter.wait.attempt(now, first ? Wait::Turn::kNow : Wait::Turn::kNotYet);
  if (first && !decision.allowed && decision.reason == Reason::kLimited && !late) {
    const Duration again = std::max(decision.retry_after, Duration(1));
    const bool hopeless = again > waiter.wait.deadline - now.steady;
    Schedule(id, waiter, hopeless ? waiter.wait.deadline : now.steady + again);
    return;
  }
  Wait wait = Remove(id, now.steady);
  lock.unlock();
  wait.done(decision);
  lock.lock();
}

}  // namespace weir
