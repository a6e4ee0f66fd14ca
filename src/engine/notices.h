// What a person should know, told once: a client that sends the same mistake a million times fills
// no log.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

namespace weir {

// Thread-safe.
class Notices {
 public:
  explicit Notices(std::function<void(std::string_view)> tell) : tell_(std::move(tell)) {}

  void Tell(std::string_view text) {
    if (tell_) tell_(text);
  }

  // Whether `what` is new: true once for each of the first few, then never again. 0 is nothing.
  bool IsNew(std::uint64_t what) noexcept {
    for (std::atomic<std::uint64_t>& told : told_) {
      std::uint64_t before = told.load(std::memory_order_relaxed);
      if (before == 0 && told.compare_exchange_strong(before, what, std::memory_order_relaxed)) {
        return true;
      }
      if (before == what) return false;
    }
    return false;
  }

 private:
  static constexpr std::size_t kMost = 32;

  std::function<void(std::string_view)> tell_;
  std::array<std::atomic<std::uint64_t>, kMost> told_{};
};

}  // namespace weir
