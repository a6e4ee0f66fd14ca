// The cap of a store in use: what has to be smaller is moved, a little at a time, by the one who
// changes it.
#include <algorithm>
#include <array>
#include <thread>

#include "store/memory/cap_shares.h"
#include "store/memory/memory_store.h"

namespace weir {

CapChange MemoryStore::SetCap(std::size_t cap_bytes, Now now) noexcept {
  // Somebody may have been about to take some when the cap was lowered.
  constexpr int kMostRounds = 4;
  const std::size_t cap = std::clamp(cap_bytes, kMinCapBytes, kMaxCapBytes);
  const Ticks at = timeline_.TicksAt(now.steady);
  const bool raised = cap > budget_.cap();
  // What is set aside never exceeds the cap by this: less of it before, more after.
  if (!raised) AssureShares(cap);
  budget_.SetCap(cap);
  if (raised) {
    AssureShares(cap);
    events_.Extend(cap);
    InEach([&](auto& table, ByteBudget&) { table.UseMore(at); });
  }
  for (int round = 0; round < kMostRounds && budget_.used() > cap; ++round) MakeSmaller(at);
  AssureShares(cap);
  return {.bytes = Stats().bytes, .within_cap = budget_.used() <= cap};
}

void MemoryStore::AssureShares(std::size_t cap) noexcept {
  events_budget_.Assure(ShareOf(cap));
  InEach([&](auto&, ByteBudget& part) { part.Assure(ShareOf(cap)); });
}

void MemoryStore::MakeSmaller(Ticks now) noexcept {
  GiveUpPastLogs(now);
  std::array<PartUse, kTables + 1> parts;
  std::array<std::size_t, kTables> live{};
  std::size_t next = 0;
  InEach([&](auto& table, ByteBudget& budget) {
    live[next] = table.CountLive(now);
    parts[next] = {
        .used = budget.used(), .needed = table.BytesFor(live[next]), .least = table.least_bytes()};
    ++next;
  });
  const std::size_t event_bytes = events_.chunks_in_use() * sizeof(EventChunk);
  const std::size_t steps = event_bytes / EventPool::kStepBytes + 1;
  parts.back() = {.used = events_budget_.used(), .needed = steps * EventPool::kStepBytes};
  ShareOut(budget_.cap(), ShareOf(budget_.cap()), parts);

  // Tables first: logs that go with them need not be moved.
  next = 0;
  InEach([&](auto& table, ByteBudget&) {
    const PartUse& part = parts[next];
    if (part.kept < part.used) table.ShrinkTo({.bytes = part.kept, .live = live[next]}, now);
    ++next;
  });
  if (parts.back().kept < parts.back().used) LowerEvents(parts.back().kept, now);
}

void MemoryStore::GiveUpPastLogs(Ticks now) noexcept {
  logs_.VisitEach([&](const Table<2>::Locked& locked) {
    if (FreshAt(locked.word) <= now) events_.GiveBackLog(locked.slot->payload);
    logs_.Unlock(locked, locked.word);
  });
}

void MemoryStore::LowerEvents(std::size_t bytes, Ticks now) noexcept {
  events_.StartLowering(bytes);
  while (!events_.FinishLowering()) {
    while (events_.excess() > 0) {
      // Others hold their logs only for as long as they decide.
      if (!ReclaimEvents(now)) std::this_thread::yield();
    }
    bool room = true;
    logs_.VisitEach([&](const Table<2>::Locked& locked) {
      room = events_.MoveDown(locked.slot->payload) && room;
      logs_.Unlock(locked, locked.word);
    });
    if (!room) ReclaimEvents(now);
    std::this_thread::yield();
  }
}

}  // namespace weir
