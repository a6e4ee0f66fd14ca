// What a Limiter is made of.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir/limiter.h>

#include "base/inline_vector.h"
#include "limiter/waiting.h"
#include "store/memory/memory_store.h"

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
  std::vector<Charge> in_force;  // Each limit by its rule, for settling.
  bool book_ahead = true;        // Every layer is a bucket, so that a wait can be booked.
  Duration max_wait{0};          // The shortest of the layers'.
};

class Question;

struct Limiter::State {
  State(std::vector<Layer> layers, const LimiterOptions& options);

  // Any verb but those that need more than an answer.
  Result<Decision> Do(Verb verb, const Keys& keys, const Ask& ask);
  Result<Decision> Settle(Action action, ReservationId reservation, std::int64_t cost);
  // Begin a wait for the question, or answer it at once.
  Result<WaitId> WaitBooked(std::shared_ptr<Question> question, Now now, Duration patience,
                            WaitDone done);
  Result<WaitId> WaitInLine(std::shared_ptr<Question> question, Now now, Duration patience,
                            WaitDone done);
  Now When(const Ask& ask) const noexcept { return ask.now ? *ask.now : clock.Read(); }

  const Layers& Current() const noexcept { return *layers.load(std::memory_order_acquire); }
  void Publish(std::unique_ptr<Layers> next);

  Clock& clock;
  MemoryStore store;
  std::atomic<const Layers*> layers{nullptr};
  std::mutex change;  // Held by whoever publishes.
  // Layers once published stay: a reader that took them up needs no lock and no count.
  std::vector<std::unique_ptr<const Layers>> published;
  Waiting waiting;
};

// One request as a group of charges, kept in place.
class Question {
 public:
  Question(MemoryStore& store, const Layers& layers, Verb verb, std::int64_t cost) noexcept
      : store_(store), layers_(&layers), verb_(verb), cost_(cost) {}

  // An error if the keys do not fit the layers.
  Result<void> SetKeys(const Keys& keys);
  void SetSameKey(std::string_view key) noexcept;
  void SetWait(Duration wait) noexcept;
  void SetVerb(Verb verb) noexcept;
  // Asks under the limits of `layers` from now on, the same layers at a later moment.
  void Follow(const Layers& layers) noexcept;
  // Gives back what the last Decide booked, from now on.
  void Unbook() noexcept;

  Group& Decide(Now now, Action action = Action::kDecide, Duration ttl = Duration(0)) noexcept;
  // Sets this key tuple apart from others.
  std::uint64_t Line() const noexcept;

 private:
  void Add(const ScopedLayer& layer, std::string_view key, std::uint64_t hash) noexcept;

  MemoryStore& store_;
  const Layers* layers_;
  Verb verb_;
  std::int64_t cost_;
  InlineVector<Charge, kMaxGroupCharges> charges_;
  InlineVector<Decision, kMaxGroupCharges> decisions_;
  InlineVector<Receipt, kMaxGroupCharges> receipts_;
  InlineVector<std::uint8_t, kMaxGroupCharges> layer_of_;  // By charge.
  Group group_;
};

}  // namespace weir
