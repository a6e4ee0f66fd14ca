#include "limiter/limiter_state.h"

#include <algorithm>
#include <utility>

#include "base/mix.h"

namespace weir {
namespace {

bool Books(const Limit& limit) noexcept {
  return limit.kind() != LimitKind::kCounted || limit.algorithm() == Algorithm::kTokenBucket ||
         limit.algorithm() == Algorithm::kLeakyBucket;
}

void WorkOut(Layers& layers) {
  layers.in_force.clear();
  for (const ScopedLayer& layer : layers.all) {
    layers.in_force.push_back({.rule = layer.name, .limit = &layer.limit});
  }
  layers.book_ahead =
      std::ranges::all_of(layers.all, [](const ScopedLayer& layer) { return Books(layer.limit); });
  layers.max_wait = layers.all[0].limit.spec().max_wait;
  for (const ScopedLayer& layer : layers.all) {
    layers.max_wait = std::min(layers.max_wait, layer.limit.spec().max_wait);
  }
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
  WorkOut(*next);
  layers.store(next.get(), std::memory_order_release);
  published.push_back(std::move(next));
}

Result<WaitId> Limiter::State::WaitBooked(std::shared_ptr<Question> question, Now now,
                                          Duration patience, WaitDone done) {
  // To wait for nothing is not to name a wait: a queue would say how long it takes, and be waited
  // for.
  question->SetWait(std::max(patience, Duration(1)));
  if (waiting.IsFull()) {
    // Nothing is booked for one who could not wait; one who need not may still pass.
    question->SetVerb(Verb::kPeek);
    Decision decision = question->Decide(now).decision;
    question->SetVerb(Verb::kCheck);
    if (decision.allowed && decision.delay > Duration(0)) {
      decision.allowed = false;
      decision.reason = Reason::kOverload;
      decision.retry_after = std::exchange(decision.delay, Duration(0));
      done(decision);
      return WaitId{0};
    }
  }
  Decision decision = question->Decide(now).decision;
  const Duration delay = std::exchange(decision.delay, Duration(0));
  if (!decision.allowed || delay == Duration(0)) {
    done(decision);
    return WaitId{0};
  }
  const auto give_back = [question](Now at) {
    question->Unbook();
    question->Decide(at);
  };
  const std::optional<WaitId> id =
      waiting.Add({.attempt = [decision](Now, Wait::Turn) { return decision; },
                   .give_back = give_back,
                   .done = done,
                   .line = std::nullopt,
                   .due = now.steady + delay,
                   .deadline = now.steady + delay});
  if (id) return *id;
  give_back(now);
  decision.allowed = false;
  decision.reason = Reason::kOverload;
  decision.retry_after = delay;
  done(decision);
  return WaitId{0};
}

Result<WaitId> Limiter::State::WaitInLine(std::shared_ptr<Question> question, Now now,
                                          Duration patience, WaitDone done) {
  const auto attempt = [this, question](Now at, Wait::Turn turn) {
    question->Follow(Current());
    question->SetVerb(turn == Wait::Turn::kNow ? Verb::kCheck : Verb::kPeek);
    Decision decision = question->Decide(at).decision;
    if (turn == Wait::Turn::kNotYet && decision.allowed) {
      decision.allowed = false;
      decision.reason = Reason::kLimited;
    }
    return decision;
  };
  const std::uint64_t line = question->Line();
  const Wait::Turn turn = waiting.HasLine(line) ? Wait::Turn::kNotYet : Wait::Turn::kNow;
  Decision decision = attempt(now, turn);
  if (decision.allowed || decision.reason != Reason::kLimited || patience == Duration(0)) {
    done(decision);
    return WaitId{0};
  }
  // Due at once: what was given back between the attempt above and now has woken nobody.
  const std::optional<WaitId> id = waiting.Add({.attempt = attempt,
                                                .give_back = nullptr,
                                                .done = done,
                                                .line = line,
                                                .due = now.steady,
                                                .deadline = now.steady + patience});
  if (id) return *id;
  decision.reason = Reason::kOverload;
  done(decision);
  return WaitId{0};
}

void Question::Add(const ScopedLayer& layer, std::string_view key, std::uint64_t hash) noexcept {
  layer_of_.emplace_back(static_cast<std::uint8_t>(&layer - layers_->all.data()));
  decisions_.emplace_back();
  receipts_.emplace_back();
  charges_.emplace_back(Charge{.rule = layer.name,
                               .key = key,
                               .hash = hash ^ layer.scope,
                               .limit = &layer.limit,
                               .cost = cost_,
                               .verb = verb_,
                               .shadow = layer.shadow});
}

void Question::SetSameKey(std::string_view key) noexcept {
  const std::uint64_t hash = store_.Hash(key);
  for (const ScopedLayer& layer : layers_->all) Add(layer, key, hash);
}

Result<void> Question::SetKeys(const Keys& keys) {
  if (keys.same()) {
    SetSameKey(*keys.same());
    return {};
  }
  if (keys.each().size() != layers_->all.size()) {
    return std::unexpected(Error{.code = ErrorCode::kInvalidArgument,
                                 .message = "keys: " + std::to_string(keys.each().size()) +
                                            " given; write one for each of the " +
                                            std::to_string(layers_->all.size()) +
                                            " layers, kSkip to leave one out"});
  }
  for (std::size_t i = 0; i < layers_->all.size(); ++i) {
    const auto& bytes = keys.each()[i].bytes();
    if (bytes) Add(layers_->all[i], *bytes, store_.Hash(*bytes));
  }
  return {};
}

void Question::SetVerb(Verb verb) noexcept {
  for (Charge& charge : charges_) charge.verb = verb;
}

void Question::Follow(const Layers& layers) noexcept {
  layers_ = &layers;
  for (std::size_t i = 0; i < charges_.size(); ++i)
    charges_[i].limit = &layers.all[layer_of_[i]].limit;
}

void Question::SetWait(Duration wait) noexcept {
  for (Charge& charge : charges_) charge.wait = wait;
}

void Question::Unbook() noexcept {
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    charges_[i].verb = Verb::kUnbook;
    charges_[i].reserved = receipts_[i].charged;
    charges_[i].cost = 0;
    charges_[i].receipt = receipts_[i].at;
  }
}

Group& Question::Decide(Now now, Action action, Duration ttl) noexcept {
  group_ = {.action = action,
            .charges = charges_.span(),
            .decisions = decisions_.span(),
            .ttl = ttl,
            .receipts = receipts_.span()};
  store_.Decide(group_, now);
  return group_;
}

std::uint64_t Question::Line() const noexcept {
  std::uint64_t line = 0;
  for (const Charge& charge : charges_) line = (line ^ charge.hash) * 0x9e3779b97f4a7c15;
  return line;
}

}  // namespace weir
