// What the tests of the memory table share: tables with keys whose words are known.
#pragma once

#include <atomic>
#include <cstdint>

#include "store/memory/table.h"

namespace weir {

inline constexpr Ticks kTableNow(1'000'000'000);
inline constexpr std::size_t kTableCap = std::size_t{64} << 20;

// Spread as a hash is, with lines that get more than their part.
constexpr std::uint64_t TableKey(std::uint64_t n) {
  std::uint64_t key = (n + 1) * 0x9e3779b97f4a7c15;
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
  key = (key ^ key >> 27) * 0x94d049bb133111eb;
  return key ^ key >> 31;
}

// A table without payload, and what its keys should have.
class Buckets {
 public:
  void Put(std::uint64_t n, Ticks fresh_at, std::uint64_t flags = 0) {
    table.Update(TableKey(n), kTableNow, [&](std::uint64_t) { return MakeWord(fresh_at) | flags; });
  }
  // 0 if the key is not there.
  std::uint64_t Word(std::uint64_t n) {
    std::uint64_t found = 0;
    table.Update(TableKey(n), kTableNow, [&](std::uint64_t word) { return found = word; });
    return found;
  }
  std::uint64_t CountKept(std::uint64_t from, std::uint64_t to) {
    std::uint64_t kept = 0;
    for (std::uint64_t n = from; n < to; ++n) kept += Word(n) != 0 ? 1U : 0U;
    return kept;
  }
  void ShrinkToHold(std::size_t entries) {
    table.ShrinkTo({.bytes = Table<0>::BytesFor(entries), .live = table.CountLive(kTableNow)},
                   kTableNow);
  }
  std::uint64_t evicted() const {
    return table.counters().evicted_live.Value() + table.counters().evicted_denied.Value();
  }

  ByteBudget budget{kTableCap};
  Table<0> table{budget, {.first_lines = 64}};
};

constexpr Ticks Later(std::uint64_t n) {
  return kTableNow + Ticks(static_cast<std::int64_t>(n) + 1);
}

// Payloads that must not be mixed up or forgotten.
class Wide {
 public:
  static void Release(void* released, std::uint64_t* payload) {
    ++*static_cast<std::atomic<std::uint64_t>*>(released);
    payload[0] = 0;
  }

  ByteBudget budget{kTableCap};
  std::atomic<std::uint64_t> released{0};
  Table<2> table{budget,
                 {.first_lines = 64, .release = &Wide::Release, .release_context = &released}};
};

}  // namespace weir
