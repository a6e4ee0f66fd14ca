// One value of many versions that is read far more often than replaced.
//
// Readers never wait and never see a mixture: each holds on to one version from Read to the end of
// its Reading. A writer publishes a new version and waits until nobody can hold the old one, then
// ends it. Readers count themselves in one of two columns; the writer has new ones count in the
// other column, waits until the first has emptied, and does so twice, because a reader may have
// looked up the column before the change and counted itself after it (as in sleepable RCU).
//
// Who needs a version for longer than a moment, because it waits for somebody else, shares it: then
// it ends with the last of those.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace weir {

template <typename T>
class Versions {
 public:
  explicit Versions(std::unique_ptr<const T> first)
      : owned_(std::move(first)), current_(owned_.get()) {}
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;

  // One version, which stays until this ends. Not for long: a writer waits for it.
  class Reading {
   public:
    explicit Reading(const Versions& versions) noexcept
        : count_(versions.Enter()), value_(versions.current_.load(std::memory_order_seq_cst)) {}
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { count_.fetch_sub(1, std::memory_order_release); }

    const T& operator*() const noexcept { return *value_; }
    const T* operator->() const noexcept { return value_; }

   private:
    std::atomic<std::int64_t>& count_;
    const T* value_;
  };
  Reading Read() const noexcept { return Reading(*this); }

  // The current version, to be kept as long as one likes. Costs a lock.
  std::shared_ptr<const T> Share() const {
    const std::scoped_lock lock(mutex_);
    return owned_;
  }
  // Whether one that is shared is still current.
  bool IsCurrent(const T* shared) const noexcept {
    return current_.load(std::memory_order_acquire) == shared;
  }

  // For one writer at a time, who may look at the current version without a Reading.
  const T& Current() const noexcept { return *current_.load(std::memory_order_relaxed); }
  void Replace(std::unique_ptr<const T> next) {
    std::shared_ptr<const T> old = std::move(next);
    {
      const std::scoped_lock lock(mutex_);
      owned_.swap(old);
    }
    current_.store(owned_.get(), std::memory_order_seq_cst);
    for (int i = 0; i < 2; ++i) {
      const std::size_t column = column_.load(std::memory_order_relaxed);
      column_.store(1 - column, std::memory_order_seq_cst);
      while (!IsEmpty(column)) std::this_thread::yield();
    }
  }

 private:
  // Threads share these few lines; each adds to one and takes from the same.
  static constexpr std::size_t kLines = 16;
  struct alignas(64) Line {
    std::array<std::atomic<std::int64_t>, 2> readers{};
  };

  std::atomic<std::int64_t>& Enter() const noexcept {
    static std::atomic<std::size_t> threads{0};
    static thread_local const std::size_t kLine =
        threads.fetch_add(1, std::memory_order_relaxed) % kLines;
    auto& count = lines_[kLine].readers[column_.load(std::memory_order_seq_cst)];
    count.fetch_add(1, std::memory_order_seq_cst);
    return count;
  }

  bool IsEmpty(std::size_t column) const noexcept {
    std::int64_t readers = 0;
    for (const Line& line : lines_) readers += line.readers[column].load(std::memory_order_seq_cst);
    return readers == 0;
  }

  mutable std::mutex mutex_;  // For those who share.
  std::shared_ptr<const T> owned_;
  std::atomic<const T*> current_;
  std::atomic<std::size_t> column_{0};
  mutable std::array<Line, kLines> lines_{};
};

}  // namespace weir
