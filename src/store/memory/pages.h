// Memory straight from the system, page by page: zeroed, untouched pages cost nothing, and pages
// can be given back while the addresses stay good.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weir {

// The bytes that a store, or one part of it, may use. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(std::size_t cap) noexcept : cap_(cap) {}
  // A part of `whole`: `assured` bytes are set aside for it at once, so that others cannot take
  // them; beyond these it takes from what `whole` has left, as they do.
  ByteBudget(ByteBudget& whole, std::size_t assured) noexcept;

  // Of the whole. What is used may be above it afterwards: nothing is handed out until enough has
  // come back.
  void SetCap(std::size_t cap) noexcept { cap_.store(cap, std::memory_order_relaxed); }
  // Of a part: sets aside more or less for it from now on. False if the whole has not enough left:
  // all is as before then.
  bool Assure(std::size_t bytes) noexcept;

  // Takes `bytes` if they leave `spare` for others; otherwise takes nothing.
  bool TryTake(std::size_t bytes, std::size_t spare = 0) noexcept;
  void GiveBack(std::size_t bytes) noexcept;

  // Of the whole.
  std::size_t cap() const noexcept {
    return (whole_ != nullptr ? whole_ : this)->cap_.load(std::memory_order_relaxed);
  }
  // Of the whole: with what is set aside for its parts.
  std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::size_t left() const noexcept;

 private:
  // How much of `used` bytes is above what is assured.
  std::size_t Beyond(std::size_t used) const noexcept {
    const std::size_t assured = assured_.load(std::memory_order_relaxed);
    return used > assured ? used - assured : 0;
  }

  ByteBudget* const whole_ = nullptr;
  std::atomic<std::size_t> assured_{0};
  std::atomic<std::size_t> cap_{0};
  std::atomic<std::size_t> used_{0};
  std::mutex mutex_;  // Held while a part and the whole change together.
};

enum class PageSize : std::uint8_t {
  kSmall,
  kLargeIfMany,  // Large ones where they are few in proportion: less for the processor to look up.
};

// A range of addresses. Only what was touched and not discarded is resident.
class Pages {
 public:
  Pages() = default;
  // Check `data()` for null: the system may refuse.
  explicit Pages(std::size_t bytes, PageSize size = PageSize::kSmall) noexcept;
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

  // Gives back the pages below `end`, which read as zero from then on; one that reaches beyond it
  // is kept, unless `end` is all there is.
  void DiscardBelow(std::size_t end) noexcept;
  std::size_t discarded() const noexcept { return discarded_; }
  // To be used once more from the beginning, when all of it was discarded.
  void StartAgain() noexcept { discarded_ = 0; }

  // Gives back the whole pages among those bytes, which read as zero from then on.
  void DiscardBetween(std::size_t begin, std::size_t end) noexcept;

 private:
  void Discard(std::size_t begin, std::size_t end) noexcept;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t page_bytes_ = 0;
  std::size_t discarded_ = 0;  // From the beginning.
};

}  // namespace weir
