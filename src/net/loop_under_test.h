// What tests of those on a loop share: a loop whose time stands still until it is moved, and a
// stream whose other end is the test.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <weir/clock.h>

#include "net/loop.h"

namespace weir {

class LoopUnderTest final : public Loop {
 public:
  Now now() noexcept override { return clock.Read(); }
  Now ReadClock() const noexcept override { return clock.Read(); }
  void Post(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  std::unique_ptr<Timer> MakeTimer(std::function<void()> on_due) override {
    return std::make_unique<TimerUnderTest>(*this, std::move(on_due));
  }
  std::unique_ptr<Stream> Connect(const Endpoint&, std::function<void(Result<void>)>) override {
    return nullptr;
  }

  // Runs what was posted and what is due.
  void Turn() {
    while (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
    for (TimerUnderTest* timer : std::vector(timers_)) timer->GoOffIfDue();
  }
  void Advance(Duration step) {
    clock.Advance(step);
    Turn();
  }

  ManualClock clock;

 private:
  class TimerUnderTest final : public Timer {
   public:
    TimerUnderTest(LoopUnderTest& loop, std::function<void()> on_due)
        : loop_(loop), on_due_(std::move(on_due)) {
      loop_.timers_.push_back(this);
    }
    TimerUnderTest(const TimerUnderTest&) = delete;
    TimerUnderTest& operator=(const TimerUnderTest&) = delete;
    ~TimerUnderTest() override { std::erase(loop_.timers_, this); }

    void Start(Duration after) override { due_ = loop_.now().steady + after; }
    void Stop() noexcept override { due_ = SteadyTime::max(); }
    void GoOffIfDue() {
      if (loop_.now().steady < due_) return;
      Stop();
      on_due_();
    }

   private:
    LoopUnderTest& loop_;
    std::function<void()> on_due_;
    SteadyTime due_ = SteadyTime::max();
  };

  std::deque<std::function<void()>> tasks_;
  std::vector<TimerUnderTest*> timers_;
};

// The other end of a StreamUnderTest; outlives it.
struct FarEnd {
  std::string received{};        // What was written to the stream.
  std::size_t window = 1 << 30;  // How much more it takes.
  bool finished = false;         // Told that nothing more comes.
  bool closed = false;           // The stream has ended.
  bool broken = false;           // Writing fails.
  bool awaited = false;          // Somebody waits to write.
  std::span<char> room{};        // Of the read that is under way.
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
    if (std::exchange(room, {}).empty()) return handler->OnHangUp();
    handler->OnRead(0);
  }
  // Takes that much more.
  void Open(std::size_t more) {
    window += more;
    if (std::exchange(awaited, false)) handler->OnWritable();
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
  std::string_view peer() const noexcept override { return peer_; }

 private:
  FarEnd& far_;
  std::string peer_;
};

}  // namespace weir
