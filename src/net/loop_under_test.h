// What tests of those on a loop share: a loop whose time stands still until it is moved, and a
// stream whose other end is the test.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
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
  void AtTurnEnd(TurnEnd& told) override {
    if (std::ranges::find(turn_ends_, &told) == turn_ends_.end()) turn_ends_.push_back(&told);
  }
  void ForgetTurnEnd(TurnEnd& told) noexcept override { std::erase(turn_ends_, &told); }
  // Nobody under test has timers or connects.
  std::unique_ptr<Timer> MakeTimer(std::function<void()>) override { return nullptr; }
  std::unique_ptr<Stream> Connect(const Endpoint&, std::function<void(Result<void>)>) override {
    return nullptr;
  }

  // Runs what was posted, and ends the turn.
  void Turn() {
    while (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
    while (!turn_ends_.empty()) {
      TurnEnd* const told = turn_ends_.front();
      turn_ends_.erase(turn_ends_.begin());
      told->OnTurnEnd();
    }
  }
  void Advance(Duration step) {
    clock.Advance(step);
    Turn();
  }

  ManualClock clock;

 private:
  std::deque<std::function<void()>> tasks_;
  std::vector<TurnEnd*> turn_ends_;
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
  void SetUserTimeout(Duration /*longest*/) noexcept override {}
  std::string_view peer() const noexcept override { return peer_; }

 private:
  FarEnd& far_;
  std::string peer_;
};

}  // namespace weir
