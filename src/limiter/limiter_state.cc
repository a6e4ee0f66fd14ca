#include "limiter/limiter_state.h"

#include <algorithm>
#include <utility>

#include "base/mix.h"
#include "limit/limit_check.h"

namespace weir {
namespace {

// The shortest of those that may keep somebody waiting; of all of them if there is none.
Duration LongestWait(const std::vector<ScopedLayer>& layers) noexcept {
  const auto shortest = [&](auto&& counts) {
    Duration wait = Duration::max();
    for (const ScopedLayer& layer : layers) {
      if (counts(layer)) wait = std::min(wait, layer.limit.spec().max_wait);
    }
    return wait;
  };
  const Duration wait = shortest([](const ScopedLayer& layer) {
    return !layer.shadow && layer.limit.kind() == LimitKind::kCounted;
  });
  return wait != Duration::max() ? wait : shortest([](const ScopedLayer&) { return true; });
}

void WorkOut(const MemoryStore& store, Layers& layers) {
  layers.only = layers.all.size() == 1 && !layers.all[0].shadow ? &layers.all[0] : nullptr;
  layers.in_force.clear();
  for (const ScopedLayer& layer : layers.all) {
    layers.in_force.push_back({store.Hash(layer.name), layer.name, &layer.limit});
  }
  std::ranges::sort(layers.in_force, {}, &LimitInForce::rule);
  layers.max_wait = LongestWait(layers.all);
}

MemoryStoreOptions StoreOptions(const LimiterOptions& options) {
  return {.cap_bytes = options.memory_cap,
          .expected_keys = options.expected_keys,
          .max_reservations = options.max_reservations,
          .hash = options.hostile_keys ? HashKind::kSipHash : HashKind::kXxh3};
}

}  // namespace

Limiter::State::State(std::vector<Layer> given, const LimiterOptions& options)
    : clock(options.clock != nullptr ? *options.clock : SystemClock::Shared()),
      store(StoreOptions(options), clock.Read()),
      waiting(clock, options.max_waiters) {
  auto first = std::make_unique<Layers>();
  for (Layer& layer : given) {
    // Mixed, because it is combined with the hashes of keys: one that reads like a layer's name
    // would otherwise undo it, and be the same in every layer.
    const std::uint64_t scope = Mix(store.Hash(layer.name));
    first->all.push_back({std::move(layer.name), std::move(layer.limit), layer.shadow, scope});
  }
  Publish(std::move(first));
}

void Limiter::State::Publish(std::unique_ptr<Layers> next) {
  WorkOut(store, *next);
  layers.store(next.get(), std::memory_order_release);
  published.push_back(std::move(next));
}

Charge& ChargedRequest::Add(std::uint8_t layer, std::uint64_t hash) noexcept {
  const ScopedLayer& its = layers_.all[layer];
  layer_of_.emplace_back(layer);
  decisions_.emplace_back();
  receipts_.emplace_back();
  return charges_.emplace_back(Charge{.rule = its.name,
                                      .hash = hash,
                                      .limit = &its.limit,
                                      .cost = cost_,
                                      .verb = verb_,
                                      .shadow = its.shadow});
}

void ChargedRequest::SetSameKey(std::string_view key) noexcept {
  const std::uint64_t hash = store_.Hash(key);
  for (std::size_t i = 0; i < layers_.all.size(); ++i) {
    Add(static_cast<std::uint8_t>(i), hash ^ layers_.all[i].scope).key = key;
  }
}

Result<void> ChargedRequest::SetKeys(const Keys& keys) {
  if (const auto& key = keys.same()) {
    SetSameKey(*key);
    return {};
  }
  if (keys.each().size() != layers_.all.size()) {
    return std::unexpected(Error{.code = ErrorCode::kInvalidArgument,
                                 .message = "keys: " + std::to_string(keys.each().size()) +
                                            " given; write one for each of the " +
                                            std::to_string(layers_.all.size()) +
                                            " layers, kSkip to leave one out"});
  }
  for (std::size_t i = 0; i < layers_.all.size(); ++i) {
    const auto& bytes = keys.each()[i].bytes();
    if (!bytes) continue;
    Add(static_cast<std::uint8_t>(i), store_.Hash(*bytes) ^ layers_.all[i].scope).key = *bytes;
  }
  return {};
}

bool ChargedRequest::BooksAhead() const noexcept {
  return std::ranges::all_of(charges_, [](const Charge& charge) {
    return charge.shadow || charge.limit->kind() != LimitKind::kCounted ||
           IsBucket(charge.limit->algorithm());
  });
}

void ChargedRequest::SetWait(Duration wait) noexcept {
  const bool takes_places = std::ranges::any_of(
      charges_, [](const Charge& charge) { return !charge.shadow && IsPlaces(*charge.limit); });
  for (Charge& charge : charges_) {
    charge.wait = takes_places && !charge.limit->spec().queue ? Duration(0) : wait;
  }
}

Group& ChargedRequest::Decide(Now now, Action action, Duration ttl) noexcept {
  group_ = {.action = action,
            .charges = charges_.span(),
            .decisions = decisions_.span(),
            .ttl = ttl,
            .receipts = receipts_.span()};
  store_.Decide(group_, now);
  return group_;
}

}  // namespace weir
