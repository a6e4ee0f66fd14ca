// Atomics for the memory table that let the scheduler choose who goes next before every access,
// and that can be broken on purpose in ways in which a table has been or could be broken.
#pragma once

#include <cstdint>

#include "interleaving/scheduler.h"
#include "store/memory/slot.h"

namespace weir::interleaving {

enum class Bug {
  kNone,
  kSwapIgnoresFingerprint,  // As with an 8-byte compare-and-swap on the state alone.
  kSwapIsTwoSteps,          // Compares, then stores.
  kLoadIsTwoSteps,          // Reads the halves of a slot one after the other.
  kStripesDoNotLock,        // Two threads may insert the same key at once.
  kLockedSlotsAreCharged,   // A charge does not look at the lock bit.
  kRaiseIsTwoSteps,         // Compares, then stores: a smaller reach may win over a larger one.
  kLocksDoNotStick,         // A slot is not locked though it was: growth moves it while charged.
  kMovedSlotsStay,          // What was moved away can still be charged where it was.
};

template <Bug kBug>
struct ScheduledAtomics {
  template <typename T>
  class Atomic {
   public:
    Atomic() = default;
    Atomic(T value) : value_(value) {}  // NOLINT: as std::atomic does

    T load(std::memory_order = std::memory_order_seq_cst) const {
      Step();
      return value_;
    }
    void store(T value, std::memory_order = std::memory_order_seq_cst) {
      Step();
      value_ = value;
    }
    T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
      Step();
      if constexpr (kBug == Bug::kStripesDoNotLock && std::is_same_v<T, bool>) return false;
      return std::exchange(value_, value);
    }
    T fetch_add(T value, std::memory_order = std::memory_order_seq_cst) {
      return std::exchange(value_, static_cast<T>(value_ + value));
    }
    T fetch_sub(T value, std::memory_order = std::memory_order_seq_cst) {
      return std::exchange(value_, static_cast<T>(value_ - value));
    }

   private:
    T value_{};
  };

  template <typename LineSlot>
  static LineSlot* Find(LineSlot* line, std::uint64_t fingerprint) {
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      Step();
      if (line[i].fingerprint == fingerprint) return line + i;
    }
    return nullptr;
  }

  static std::uint64_t LoadWord(const SlotHead& slot) { return Load(slot).word; }

  static SlotHead Load(const SlotHead& slot) {
    Step();
    SlotHead head = slot;
    if constexpr (kBug == Bug::kLoadIsTwoSteps) {
      Step();
      head.word = slot.word;
    }
    if constexpr (kBug == Bug::kLockedSlotsAreCharged) head.word &= ~kLockedBit;
    return head;
  }

  static bool CompareExchange(SlotHead& slot, SlotHead expected, SlotHead desired) {
    Step();
    SlotHead found = slot;
    if constexpr (kBug == Bug::kSwapIgnoresFingerprint) {
      if (found.word != expected.word) return false;
      const bool changes_owner = expected.fingerprint != desired.fingerprint;
      if (changes_owner && found.fingerprint != expected.fingerprint) return false;
      if (!changes_owner) desired.fingerprint = found.fingerprint;
      slot = desired;
      return true;
    }
    if constexpr (kBug == Bug::kLockedSlotsAreCharged) found.word &= ~kLockedBit;
    if (found != expected) return false;
    if constexpr (kBug == Bug::kLocksDoNotStick) {
      if (desired.word == (expected.word | kLockedBit)) return true;
    }
    if constexpr (kBug == Bug::kSwapIsTwoSteps) Step();
    slot = desired;
    return true;
  }

  static void Store(SlotHead& slot, SlotHead value) {
    Step();
    if constexpr (kBug == Bug::kMovedSlotsStay) {
      if (value.fingerprint == 0) value = {slot.fingerprint, slot.word & ~kLockedBit};
    }
    slot = value;
  }
  static void StoreWord(SlotHead& slot, std::uint64_t word) {
    Step();
    slot.word = word;
  }
  static std::uint8_t LoadByte(const std::uint8_t& byte) {
    Step();
    return byte;
  }
  static void RaiseByte(std::uint8_t& byte, std::uint8_t least) {
    Step();
    if (byte >= least) return;
    if constexpr (kBug == Bug::kRaiseIsTwoSteps) Step();
    byte = least;
  }
  static void Pause(unsigned) { Wait(); }
};

}  // namespace weir::interleaving
