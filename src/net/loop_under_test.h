// What tests of those on a loop share: a loop whose time stands still until it is moved, and
// streams whose other end is the test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <weir/clock.h>

#include "net/loop.h"

namespace weir {

// The other end of a StreamUnderTest; outlives it.
struct FarEnd {
  std::string received{};        // What was written to the stream.
  std::size_t window = 1 << 30;  // How much more it takes.
  bool finished = false;         // Told that nothing more comes.
  bool closed = false;           // The stream has ended.
  bool broken = false;           // Writing fails.
  bool awaited = false;          // Somebody waits to write.
  std::span<char> room{};        // Of the read that is under way.
  Duration user_timeout{0};      // As it was set.
  std::size_t held = 0;          // Bytes that the stream says it holds.
  StreamHandler* handler = nullptr;

  // Sends, in as many pieces as are read. Nothing once nobody reads.
  void Send(std::string_view text) {
    while (!text.empty() && !closed && !room.empty()) {
      const std::span<char> into = std::exchange(room, {});
      const std::size_t count = std::min(text.size(), into.size());
      std::memcpy(into.data(), text.data(), count);
      text.remove_prefix(count);
      handler->OnRead(count);
    }
    unread = text.size();
  }
  void FinishSending() {
    if (closed) return;
    if (std::exchange(room, {}).empty()) return handler->OnHangUp();
    handler->OnRead(0);
  }
  // Takes that much more.
  void Open(std::size_t more) {
    window += more;
    if (std::exchange(awaited, false)) handler->OnWritable();
  }
  // The connection is lost.
  void Break() {
    broken = true;
    if (!closed) handler->OnBroken();
  }
  std::string Take() { return std::exchange(received, {}); }

  std::size_t unread = 0;  // Of what was sent last.
};

class StreamUnderTest final : public Stream {
 public:
  explicit StreamUnderTest(FarEnd& far, std::string peer = "192.0.2.1")
      : far_(far), peer_(std::move(peer)) {}
  StreamUnderTest(const StreamUnderTest&) = delete;
  StreamUnderTest& operator=(const StreamUnderTest&) = delete;
  ~StreamUnderTest() override { far_.closed = true; }

  void SetHandler(StreamHandler& handler) noexcept override { far_.handler = &handler; }
  void Read(std::span<char> room) noexcept override { far_.room = room; }
  std::optional<std::size_t> Write(std::string_view bytes) noexcept override {
    if (far_.broken) return std::nullopt;
    const std::size_t count = std::min(bytes.size(), far_.window);
    far_.received += bytes.substr(0, count);
    far_.window -= count;
    return count;
  }
  void AwaitWritable() noexcept override { far_.awaited = true; }
  void FinishWriting() noexcept override { far_.finished = true; }
  void SetUserTimeout(Duration longest) noexcept override { far_.user_timeout = longest; }
  std::string_view peer() const noexcept override { return peer_; }
  std::size_t buffered() const noexcept override { return far_.held; }

 private:
  FarEnd& far_;
  std::string peer_;
};

// One call of Loop::Connect. Hangs until the test says how it ends.
class ConnectAttempt {
 public:
  ConnectAttempt(Endpoint to, std::function<void(Result<void>)> connected)
      : endpoint(std::move(to)), connected_(std::move(connected)) {}

  // Nothing happens if it has been ended meanwhile, or concluded before.
  void Accept() { Conclude({}); }
  void Refuse(std::string message = "Connection refused") {
    Conclude(std::unexpected(Error{ErrorCode::kInternal, std::move(message)}));
  }
  // Whether neither side has ended it.
  bool pending() const noexcept { return connected_ && !far.closed; }

  const Endpoint endpoint;
  FarEnd far{};  // Of the stream: `far.closed` once its owner has ended it, connected or not.

 private:
  void Conclude(Result<void> result) {
    const auto connected = std::exchange(connected_, {});
    if (connected && !far.closed) connected(std::move(result));
  }

  std::function<void(Result<void>)> connected_;
};

// Outlives what it made.
class LoopUnderTest final : public Loop {
 public:
  Now now() noexcept override { return clock.Read(); }
  Now ReadClock() const noexcept override { return clock.Read(); }
  void Post(std::function<void()> task) override {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  void AtTurnEnd(TurnEnd& told) override {
    if (std::ranges::find(turn_ends_, &told) == turn_ends_.end()) turn_ends_.push_back(&told);
  }
  void ForgetTurnEnd(TurnEnd& told) noexcept override { std::erase(turn_ends_, &told); }
  std::unique_ptr<Timer> MakeTimer(std::function<void()> on_due) override {
    return std::make_unique<TimerUnderTest>(*this, std::move(on_due));
  }
  // See `attempts`.
  std::unique_ptr<Stream> Connect(const Endpoint& endpoint,
                                  std::function<void(Result<void>)> connected) override {
    attempts.push_back(std::make_unique<ConnectAttempt>(endpoint, std::move(connected)));
    return std::make_unique<StreamUnderTest>(attempts.back()->far, endpoint.host);
  }

  // Runs what was posted and the timers that are due, and ends the turn.
  void Turn() {
    while (const std::function<void()> task = NextTask()) task();
    while (!timers_.empty() && timers_.begin()->first.due <= clock.Read().steady) RunTimer();
    while (!turn_ends_.empty()) {
      TurnEnd* const told = turn_ends_.front();
      turn_ends_.erase(turn_ends_.begin());
      told->OnTurnEnd();
    }
  }
  // Moves time, with a turn at each moment when a timer is due and one at the end.
  void Advance(Duration step) {
    const SteadyTime end = clock.Read().steady + step;
    while (!timers_.empty() && timers_.begin()->first.due <= end) {
      const Duration until_due = timers_.begin()->first.due - clock.Read().steady;
      if (until_due > Duration(0)) clock.Advance(until_due);
      Turn();
    }
    clock.Advance(end - clock.Read().steady);
    Turn();
  }
  std::size_t timers() const noexcept { return timers_.size(); }

  ManualClock clock;
  // One for each call of Connect, in their order; to be accepted, refused or left hanging.
  std::vector<std::unique_ptr<ConnectAttempt>> attempts;

 private:
  // Timers that are due at the same moment are run in the order in which they were started.
  struct Due {
    SteadyTime due{};
    std::uint64_t sequence = 0;
    auto operator<=>(const Due&) const = default;
  };
  using Task = std::shared_ptr<const std::function<void()>>;

  class TimerUnderTest final : public Timer {
   public:
    TimerUnderTest(LoopUnderTest& loop, std::function<void()> on_due)
        : loop_(loop), task_(std::make_shared<const std::function<void()>>(std::move(on_due))) {}
    TimerUnderTest(const TimerUnderTest&) = delete;
    TimerUnderTest& operator=(const TimerUnderTest&) = delete;
    ~TimerUnderTest() override { Stop(); }

    void Start(Duration after) override {
      Stop();
      due_ = {.due = loop_.now().steady + after, .sequence = ++loop_.timers_started_};
      loop_.timers_.emplace(due_, task_);
    }
    void Stop() noexcept override { loop_.timers_.erase(due_); }

   private:
    LoopUnderTest& loop_;
    const Task task_;
    Due due_{};
  };

  std::function<void()> NextTask() {
    const std::scoped_lock lock(mutex_);
    if (tasks_.empty()) return {};
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }
  void RunTimer() {
    const Task task = timers_.begin()->second;  // It may end its own timer.
    timers_.erase(timers_.begin());
    (*task)();
  }

  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;  // Under the mutex.
  std::vector<TurnEnd*> turn_ends_;
  std::map<Due, Task> timers_;
  std::uint64_t timers_started_ = 0;
};

}  // namespace weir
