// What a Limiter is made of.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir/limiter.h>

#include "base/inline_vector.h"
#include "store/memory/memory_store.h"
#include "store/waiting.h"

namespace weir {

// A layer and what sets its keys apart from those of the others.
struct ScopedLayer {
  std::string name;
  Limit limit;
  bool shadow;
  std::uint64_t scope;

  Charge ChargeFor(const MemoryStore& store, std::string_view key) const noexcept {
    return {.rule = name, .key = key, .hash = store.Hash(key) ^ scope, .limit = &limit};
  }
};

// All layers as of one moment; never changed once others can see it.
struct Layers {
  std::vector<ScopedLayer> all;
  const ScopedLayer* only = nullptr;   // The layer, if it is the only one and enforced.
  std::vector<LimitInForce> in_force;  // By the hashes of their names, for settling.
  Duration max_wait{0};                // The longest that anybody may wait.
};

// One request as a group of charges, kept in place.
class ChargedRequest {
 public:
  ChargedRequest(MemoryStore& store, const Layers& layers, Verb verb, std::int64_t cost) noexcept
      : store_(store), layers_(layers), verb_(verb), cost_(cost) {}

  // An error if the keys do not fit the layers.
  Result<void> SetKeys(const Keys& keys);
  void SetSameKey(std::string_view key) noexcept;
  // One key of one layer, by its identity there.
  Charge& Add(std::uint8_t layer, std::uint64_t hash) noexcept;

  // How long to wait at most, by booking ahead. Next to a place under a concurrency limit only a
  // queue books, which admits nobody otherwise: a place that is held while a bucket fills is of
  // use to nobody.
  void SetWait(Duration wait) noexcept;
  // True if every limit that may stop the request can be booked ahead.
  bool BooksAhead() const noexcept;

  Group& Decide(Now now, Action action = Action::kDecide, Duration ttl = Duration(0)) noexcept;

  std::int64_t cost() const noexcept { return cost_; }
  std::span<const Charge> charges() const noexcept { return {charges_.begin(), charges_.size()}; }
  std::uint8_t layer_of(std::size_t charge) const noexcept { return layer_of_[charge]; }

 private:
  MemoryStore& store_;
  const Layers& layers_;
  Verb verb_;
  std::int64_t cost_;
  InlineVector<Charge, kMaxGroupCharges> charges_;
  InlineVector<Decision, kMaxGroupCharges> decisions_;
  InlineVector<Receipt, kMaxGroupCharges> receipts_;
  InlineVector<std::uint8_t, kMaxGroupCharges> layer_of_;  // By charge.
  Group group_;
};

struct Limiter::State {
  State(std::vector<Layer> given, const LimiterOptions& options);

  // The same key in every layer.
  Decision CheckAll(const Layers& all, std::string_view key, Now now) noexcept;
  // Any verb but those that need more than an answer.
  Result<Decision> Do(Verb verb, const Keys& keys, const Ask& ask);
  // Part of a batch, under the limits in force when it begins: a limit that is changed meanwhile
  // takes effect within so many.
  static constexpr std::size_t kMostAtOnce = 32;
  void CheckSome(std::span<const BatchItem> items, Now now, std::span<Decision> decisions) noexcept;
  Result<Decision> Settle(Action action, ReservationId reservation, std::int64_t cost);
  // Begins a wait for the request, or answers at once.
  WaitId Begin(const ChargedRequest& request, Now now, Duration patience, WaitDone done);
  Now When(const Ask& ask) const noexcept { return ask.now ? *ask.now : clock.Read(); }

  const Layers& Current() const noexcept { return *layers.load(std::memory_order_acquire); }
  void Publish(std::unique_ptr<Layers> next);

  class PatientRequest;

  Clock& clock;
  MemoryStore store;
  std::atomic<const Layers*> layers{nullptr};
  std::mutex change;  // Held by whoever publishes.
  // Layers once published stay: a reader that took them up needs no lock and no count.
  std::vector<std::unique_ptr<const Layers>> published;
  Waiting waiting;
};

}  // namespace weir
