// What a person should know, told once: a client that sends the same mistake a million times fills
// no log.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace weir {

// Thread-safe.
class Notices {
 public:
  explicit Notices(std::function<void(std::string_view)> tell) : tell_(std::move(tell)) {}

  void Tell(std::string_view text) {
    if (tell_) tell_(text);
  }

  enum class Kind : std::uint8_t { kTooManyRules, kForwardingIgnored };
  // True once for each.
  bool IsFirst(Kind kind) noexcept {
    return !first_[static_cast<std::size_t>(kind)].exchange(true, std::memory_order_relaxed);
  }

  // Whether the tier with this hash was not seen before: true once for each of the first few, then
  // never again, because those who ask can make up any number of them.
  bool IsNewTier(std::uint64_t hash) noexcept {
    const std::uint64_t what = hash | 1;  // 0 is a free place.
    for (std::atomic<std::uint64_t>& told : tiers_) {
      std::uint64_t before = told.load(std::memory_order_relaxed);
      if (before == 0 && told.compare_exchange_strong(before, what, std::memory_order_relaxed)) {
        return true;
      }
      if (before == what) return false;
    }
    return false;
  }

 private:
  static constexpr std::size_t kMostTiers = 32;

  std::function<void(std::string_view)> tell_;
  std::array<std::atomic<bool>, 2> first_{};
  std::array<std::atomic<std::uint64_t>, kMostTiers> tiers_{};
};

}  // namespace weir
