// Everybody who is in a log, with how much of everything each asked for at most. Grows with the
// clients and not with the lines: about 180 bytes each, and more for those who come often, but no
// more than some kilobytes. Their names are not kept: whoever needs one reads the log again.
//
// Belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <weir/time.h>

#include "lab/calibrate/peak_window.h"
#include "lab/calibrate/period.h"

namespace weir::lab {

using ClientId = std::uint32_t;  // In the order in which they came, from 0.

struct Client {
  std::uint64_t hash = 0;
  std::uint64_t requests = 0;
  WallTime first{};
  WallTime last{};
  std::array<PeakWindow, kPeriods> windows{};
};

class ClientTable {
 public:
  ClientTable();

  // One request more of whoever has this hash, not earlier than any before.
  void Count(std::uint64_t hash, WallTime time);

  std::optional<ClientId> Find(std::uint64_t hash) const noexcept;
  const Client& operator[](ClientId id) const noexcept { return chunks_[id / kChunk][id % kChunk]; }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept;

 private:
  struct Slot {
    std::uint32_t tag = 0;
    ClientId id = kNobody;
  };
  static constexpr ClientId kNobody = 0xffff'ffff;
  static constexpr std::size_t kChunk = 1024;
  static constexpr std::size_t kFirstSweep = 1U << 16;

  Client& At(ClientId id) noexcept { return chunks_[id / kChunk][id % kChunk]; }
  // Where it is, or would be.
  std::size_t PlaceOf(std::uint64_t hash) const noexcept;
  Client& FindOrAdd(std::uint64_t hash, WallTime time);
  void Grow();
  // Takes the runs from all who have been away for long enough.
  void Sweep(WallTime now);

  std::vector<Slot> slots_;  // A power of two, at most five eighths of them used.
  std::vector<std::unique_ptr<Client[]>> chunks_;
  std::size_t size_ = 0;
  RunPool runs_;
  std::size_t sweep_at_ = kFirstSweep;
  std::optional<WallTime> began_;
};

}  // namespace weir::lab
