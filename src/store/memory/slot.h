// The unit of the memory table, and its atomics.
//
//   Slot:   | fingerprint 64 | word 64 | payload ... |          16-byte aligned
//   word:   | fresh_at 62 (ticks) | denied 1 | locked 1 |
//   line:   four slots in a row; a 16-byte slot makes it one cache line
//
// Fingerprint 0 is a slot that was never used. A slot whose fresh_at has passed is free whatever
// limit it was under. A charge swaps fingerprint and word together, by one 16-byte
// compare-and-swap, so a thread that was overtaken can never charge a slot that meanwhile belongs
// to somebody else. Whoever set `locked` owns the slot, payload included, until it is taken off.
#pragma once

#include <emmintrin.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/ticks.h"

#if defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER
#endif
#endif
#ifdef WEIR_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace weir {

struct alignas(16) SlotHead {
  std::uint64_t fingerprint = 0;
  std::uint64_t word = 0;

  friend bool operator==(const SlotHead&, const SlotHead&) = default;
};

inline constexpr std::uint64_t kLockedBit = 1;
inline constexpr std::uint64_t kDeniedBit = 2;
inline constexpr int kFlagBits = 2;

constexpr std::uint64_t MakeWord(Ticks fresh_at) noexcept {
  return static_cast<std::uint64_t>(fresh_at.count()) << kFlagBits;
}
constexpr Ticks FreshAt(std::uint64_t word) noexcept {
  return Ticks(static_cast<std::int64_t>(word >> kFlagBits));
}
constexpr bool IsLocked(std::uint64_t word) noexcept { return (word & kLockedBit) != 0; }
constexpr bool IsDenied(std::uint64_t word) noexcept { return (word & kDeniedBit) != 0; }

template <std::size_t kPayloadWords>
struct Slot : SlotHead {
  std::uint64_t payload[kPayloadWords];
};
template <>
struct Slot<0> : SlotHead {};

inline constexpr std::size_t kSlotsPerLine = 4;

// The real atomics. A test brings its own, to choose who goes next at every step.
struct HardwareAtomics {
  template <typename T>
  using Atomic = std::atomic<T>;

  // The slot of a line that has this fingerprint, or null. Without branches between the four, for
  // which it is cannot be predicted; and without vectors, whose way back to an address is longer.
  template <typename LineSlot>
  [[gnu::always_inline]] static LineSlot* Find(LineSlot* line, std::uint64_t fingerprint) noexcept {
    const auto same = [&](unsigned i) -> std::size_t {
      std::size_t is = __atomic_load_n(&line[i].fingerprint, __ATOMIC_ACQUIRE) == fingerprint;
      asm("" : "+r"(is));  // Hides where it came from; the compiler would branch otherwise.
      return is;
    };
    const std::size_t zeroth = same(0);
    const std::size_t first = same(1);
    const std::size_t second = same(2);
    const std::size_t third = same(3);
    if ((zeroth | first | second | third) == 0) [[unlikely]]
      return nullptr;
    // NOLINTNEXTLINE(clang-analyzer-core.NullPointerArithm): a line that is searched exists.
    return line + (first + 2 * second + 3 * third);
  }

  static std::uint64_t LoadWord(const SlotHead& slot) noexcept {
    return __atomic_load_n(&slot.word, __ATOMIC_ACQUIRE);
  }

  // Both halves as of one instant. An aligned 16-byte load is one access on every x86-64 with AVX
  // (both vendors promise it); the built-in would take a lock or write.
  static SlotHead Load(const SlotHead& slot) noexcept {
#ifdef WEIR_THREAD_SANITIZER  // It does not know that a vector load can be atomic.
    return Unpack(__atomic_load_n(reinterpret_cast<const Wide*>(&slot), __ATOMIC_ACQUIRE));
#else
    const __m128i both = _mm_load_si128(reinterpret_cast<const __m128i*>(&slot));
    std::atomic_signal_fence(std::memory_order_acquire);
    const auto high = _mm_unpackhi_epi64(both, both);
    return {static_cast<std::uint64_t>(_mm_cvtsi128_si64(both)),
            static_cast<std::uint64_t>(_mm_cvtsi128_si64(high))};
#endif
  }

  static bool CompareExchange(SlotHead& slot, SlotHead expected, SlotHead desired) noexcept {
    return __sync_bool_compare_and_swap(reinterpret_cast<Wide*>(&slot), Pack(expected),
                                        Pack(desired));
  }

  // For the holder of the slot's lock, or of a line nobody else can reach.
  static void Store(SlotHead& slot, SlotHead value) noexcept {
    __atomic_store_n(&slot.fingerprint, value.fingerprint, __ATOMIC_RELEASE);
    __atomic_store_n(&slot.word, value.word, __ATOMIC_RELEASE);
  }
  static void StoreWord(SlotHead& slot, std::uint64_t word) noexcept {
#ifdef WEIR_THREAD_SANITIZER  // It takes the word and the whole slot for two different things.
    __tsan_release(&slot);
#endif
    __atomic_store_n(&slot.word, word, __ATOMIC_RELEASE);
  }

  static std::uint8_t LoadByte(const std::uint8_t& byte) noexcept {
    return __atomic_load_n(&byte, __ATOMIC_RELAXED);
  }
  static void RaiseByte(std::uint8_t& byte, std::uint8_t least) noexcept {
    std::uint8_t found = LoadByte(byte);
    while (found < least && !__atomic_compare_exchange_n(&byte, &found, least, /*weak=*/true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }

  // Called while waiting for another thread, with how often so far: spin first, then let it run.
  static void Pause(unsigned times) noexcept {
    if (times < 64) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static constexpr Wide Pack(SlotHead head) noexcept {
    return static_cast<Wide>(head.word) << 64 | head.fingerprint;
  }
  static constexpr SlotHead Unpack(Wide wide) noexcept {
    return {static_cast<std::uint64_t>(wide), static_cast<std::uint64_t>(wide >> 64)};
  }
};

}  // namespace weir
