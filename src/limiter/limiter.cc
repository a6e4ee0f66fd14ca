#include <weir/limiter.h>

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "limit/limit_words.h"
#include "limiter/limiter_state.h"
#include "store/key_hashes.h"

namespace weir {
namespace {

Error Invalid(std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

bool IsCost(std::int64_t cost) { return cost >= 0 && cost <= kMaxCount; }

Error NoCost(std::string_view field, std::int64_t cost) {
  return Invalid(std::string(field) + ": " + std::to_string(cost) + " is not allowed; write 0 to " +
                 std::to_string(kMaxCount));
}

std::optional<Error> CheckCost(std::int64_t cost) {
  if (IsCost(cost)) return std::nullopt;
  return NoCost("cost", cost);
}

std::optional<Error> CheckDuration(std::string_view field, Duration value, Duration most) {
  if (value >= Duration(0) && value <= most) return std::nullopt;
  return Invalid(std::string(field) + ": " + TextOf(value) + " is not allowed; write 0s to " +
                 TextOf(most));
}

std::optional<Error> CheckSize(std::string_view field, std::size_t value, std::size_t least,
                               std::size_t most) {
  if (value >= least && value <= most) return std::nullopt;
  return Invalid(std::string(field) + ": " + std::to_string(value) + " is not allowed; write " +
                 std::to_string(least) + " to " + std::to_string(most));
}

std::optional<Error> CheckOptions(const LimiterOptions& options) {
  constexpr std::size_t kMostReservations = std::size_t{1} << 24;
  auto error = CheckSize("memory_cap", options.memory_cap, kMinCapBytes, kMaxCapBytes);
  if (!error) {
    error = CheckSize("max_reservations", options.max_reservations, 0, kMostReservations);
  }
  return error;
}

std::optional<Error> CheckLayers(const std::vector<Layer>& layers) {
  if (layers.empty() || layers.size() > kMaxGroupCharges) {
    return Invalid("layers: " + std::to_string(layers.size()) + " is not allowed; write 1 to " +
                   std::to_string(kMaxGroupCharges));
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto same = [&](const Layer& other) { return other.name == layers[i].name; };
    if (std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      return Invalid("layers: two are called \"" + layers[i].name + "\"; names must differ");
    }
  }
  return std::nullopt;
}

}  // namespace

Limiter::Limiter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Result<Limiter> Limiter::Make(std::string_view limit, const LimiterOptions& options) {
  Result<Limit> parsed = Limit::Parse(limit);
  if (!parsed) return std::unexpected(parsed.error());
  return Make(*parsed, options);
}

Result<Limiter> Limiter::Make(const Limit& limit, const LimiterOptions& options) {
  return Make(std::vector<Layer>{{.name = "", .limit = limit}}, options);
}

Result<Limiter> Limiter::Make(std::vector<Layer> layers, const LimiterOptions& options) {
  if (auto error = CheckOptions(options)) return std::unexpected(*std::move(error));
  if (auto error = CheckLayers(layers)) return std::unexpected(*std::move(error));
  return Limiter(std::make_unique<State>(std::move(layers), options));
}

Decision Limiter::Check(std::string_view key) noexcept {
  return CheckAt(key, state_->clock.Read());
}

Decision Limiter::CheckAt(std::string_view key, Now now) noexcept {
  const Layers& layers = state_->Current();
  if (layers.only == nullptr) return state_->CheckAll(layers, key, now);
  return state_->store.Decide(layers.only->ChargeFor(state_->store, key), now);
}

[[gnu::noinline]] Decision Limiter::State::CheckAll(const Layers& all, std::string_view key,
                                                    Now now) noexcept {
  ChargedRequest request(store, all, Verb::kCheck, 1);
  request.SetSameKey(key);
  return request.Decide(now).decision;
}

Result<Decision> Limiter::Check(Keys keys, const Ask& ask) {
  return state_->Do(Verb::kCheck, keys, ask);
}
Result<Decision> Limiter::Check(std::initializer_list<Key> keys) {
  return state_->Do(Verb::kCheck, keys, {});
}
Result<Decision> Limiter::Peek(Keys keys, const Ask& ask) {
  return state_->Do(Verb::kPeek, keys, ask);
}
Result<Decision> Limiter::Refund(Keys keys, const Ask& ask) {
  return state_->Do(Verb::kRefund, keys, ask);
}
Result<Decision> Limiter::Penalize(Keys keys, const Ask& ask) {
  return state_->Do(Verb::kPenalize, keys, ask);
}
Result<Decision> Limiter::Reset(Keys keys, const Ask& ask) {
  return state_->Do(Verb::kReset, keys, ask);
}

Result<Decision> Limiter::State::Do(Verb verb, const Keys& keys, const Ask& ask) {
  if (auto error = CheckCost(ask.cost)) return std::unexpected(*std::move(error));
  const Layers& now_in_force = Current();
  if (const auto& key = keys.same(); key && now_in_force.only != nullptr) {
    Charge charge = now_in_force.only->ChargeFor(store, *key);
    charge.cost = ask.cost;
    charge.verb = verb;
    const Decision decision = store.Decide(charge, When(ask));
    if (verb == Verb::kRefund || verb == Verb::kReset) waiting.Nudge({&charge.hash, 1});
    return decision;
  }
  ChargedRequest request(store, now_in_force, verb, ask.cost);
  if (auto set = request.SetKeys(keys); !set) return std::unexpected(set.error());
  const Decision decision = request.Decide(When(ask)).decision;
  if (verb == Verb::kRefund || verb == Verb::kReset) {
    KeyHashes given_back;
    for (const Charge& charge : request.charges()) given_back.emplace_back(charge.hash);
    waiting.Nudge(given_back.span());
  }
  return decision;
}

Result<void> Limiter::CheckBatch(std::span<const BatchItem> items, std::span<Decision> decisions) {
  return CheckBatch(items, decisions, state_->clock.Read());
}

Result<void> Limiter::CheckBatch(std::span<const BatchItem> items, std::span<Decision> decisions,
                                 Now now) {
  if (decisions.size() < items.size()) {
    return std::unexpected(Invalid("decisions: room for " + std::to_string(decisions.size()) +
                                   "; write at least " + std::to_string(items.size())));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (IsCost(items[i].cost)) continue;
    return std::unexpected(NoCost("items[" + std::to_string(i) + "].cost", items[i].cost));
  }
  for (std::size_t done = 0; done < items.size(); done += State::kMostAtOnce) {
    const std::size_t count = std::min(State::kMostAtOnce, items.size() - done);
    state_->CheckSome(items.subspan(done, count), now, decisions.subspan(done, count));
  }
  return {};
}

void Limiter::State::CheckSome(std::span<const BatchItem> items, Now now,
                               std::span<Decision> decisions) noexcept {
  const Layers& in_force = Current();
  if (in_force.only == nullptr) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      ChargedRequest request(store, in_force, Verb::kCheck, items[i].cost);
      request.SetSameKey(items[i].key);
      decisions[i] = request.Decide(now).decision;
    }
    return;
  }
  InlineVector<Charge, kMostAtOnce> charges;
  for (const BatchItem& item : items) {
    charges.emplace_back(in_force.only->ChargeFor(store, item.key)).cost = item.cost;
  }
  store.DecideEach(charges.span(), now, decisions);
}

// --- Reservations and leases ---

Result<Reservation> Limiter::Reserve(Keys keys, const Ask& ask, Duration ttl) {
  if (auto error = CheckCost(ask.cost)) return std::unexpected(*std::move(error));
  if (auto error = CheckDuration("ttl", ttl, kMaxPeriod)) return std::unexpected(*std::move(error));
  ChargedRequest request(state_->store, state_->Current(), Verb::kCheck, ask.cost);
  if (auto set = request.SetKeys(keys); !set) return std::unexpected(set.error());
  return Reservation(*this, request.Decide(state_->When(ask), Action::kReserve, ttl).decision);
}

Result<Lease> Limiter::Acquire(Keys keys, const Ask& ask) {
  Result<Decision> decision = Check(keys, ask);
  if (!decision) return std::unexpected(decision.error());
  return Lease(*this, *decision);
}

Result<Lease> Limiter::AcquireWithin(Keys keys, Duration patience, const Ask& ask) {
  Result<Decision> decision = Wait(keys, patience, ask);
  if (!decision) return std::unexpected(decision.error());
  return Lease(*this, *decision);
}

Result<Decision> Limiter::Commit(ReservationId reservation, std::int64_t cost) {
  if (auto error = CheckCost(cost)) return std::unexpected(*std::move(error));
  return state_->Settle(Action::kCommit, reservation, cost);
}

Result<Decision> Limiter::Cancel(ReservationId reservation) {
  return state_->Settle(Action::kCancel, reservation, 0);
}

Result<Decision> Limiter::State::Settle(Action action, ReservationId reservation,
                                        std::int64_t cost) {
  std::array<std::uint64_t, kMaxGroupCharges> settled;
  Group group{.action = action,
              .in_force = Current().in_force,
              .reservation = reservation,
              .cost = cost,
              .settled = settled};
  store.Decide(group, clock.Read());
  if (group.error) return std::unexpected(*group.error);
  waiting.Nudge(std::span(settled).first(group.settled_count));
  return group.decision;
}

Reservation::Reservation(Reservation&& other) noexcept
    : limiter_(other.limiter_), decision_(std::exchange(other.decision_, Decision{})) {}
Reservation& Reservation::operator=(Reservation&& other) noexcept {
  limiter_ = other.limiter_;
  decision_ = std::exchange(other.decision_, Decision{});
  return *this;
}
Result<Decision> Reservation::Commit(std::int64_t cost) {
  return limiter_->Commit(decision_.reservation, cost);
}
Result<Decision> Reservation::Cancel() { return limiter_->Cancel(decision_.reservation); }

Lease::Lease(Lease&& other) noexcept
    : limiter_(other.limiter_), decision_(std::exchange(other.decision_, Decision{})) {}
Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  limiter_ = other.limiter_;
  decision_ = std::exchange(other.decision_, Decision{});
  return *this;
}
Lease::~Lease() { Release(); }
void Lease::Release() noexcept {
  const ReservationId id = std::exchange(decision_.reservation, ReservationId::kNone);
  // A lease that has ended by itself has nothing left to give back.
  if (id != ReservationId::kNone) std::ignore = limiter_->Release(id);
}

// --- Waiting ---

Result<Decision> Limiter::Wait(Keys keys, Duration patience, const Ask& ask) {
  if (state_->waiting.IsServing()) {
    return std::unexpected(
        Invalid("Wait: never ends inside a callback of WaitThen; call WaitThen there, too"));
  }
  // Shared: the one who answers may still be at it when the answer is read.
  const auto promise = std::make_shared<std::promise<Decision>>();
  std::future<Decision> answer = promise->get_future();
  const Result<WaitId> started = WaitThen(
      keys, patience, [promise](const Decision& decision) { promise->set_value(decision); }, ask);
  if (!started) return std::unexpected(started.error());
  return answer.get();
}

Result<WaitId> Limiter::WaitThen(Keys keys, Duration patience, WaitDone done, const Ask& ask) {
  if (!done) return std::unexpected(Invalid("done: is empty; write what to call"));
  if (auto error = CheckCost(ask.cost)) return std::unexpected(*std::move(error));
  const Layers& layers = state_->Current();
  if (auto error = CheckDuration("patience", patience, layers.max_wait)) {
    return std::unexpected(*std::move(error));
  }
  ChargedRequest request(state_->store, layers, Verb::kCheck, ask.cost);
  if (auto set = request.SetKeys(keys); !set) return std::unexpected(set.error());
  return state_->Begin(request, state_->When(ask), patience, std::move(done));
}

bool Limiter::CancelWait(WaitId id) { return state_->waiting.Cancel(id); }

// --- Live change ---

Result<LimitChange> Limiter::SetLimit(std::string_view name, const Limit& limit) {
  const std::scoped_lock lock(state_->change);
  const Layers& current = state_->Current();
  const auto found = std::ranges::find(current.all, name, &ScopedLayer::name);
  if (found == current.all.end()) {
    return std::unexpected(Error{.code = ErrorCode::kNotFound,
                                 .message = "layer: none is called \"" + std::string(name) + "\""});
  }
  if (limit.spec() == found->limit.spec()) return LimitChange::kNone;
  auto next = std::make_unique<Layers>(current);
  Limit& changed = next->all[static_cast<std::size_t>(found - current.all.begin())].limit;
  changed = limit.Replacing(found->limit, state_->clock.Read());
  // Leases need no predecessor: a concurrency limit goes on with the very same state.
  const bool goes_on =
      changed.predecessor() != nullptr || changed.state_salt() == found->limit.state_salt();
  state_->Publish(std::move(next));
  state_->waiting.NudgeAll();
  return goes_on ? LimitChange::kGoesOn : LimitChange::kStartsAnew;
}

LimiterStats Limiter::Stats() const {
  const MemoryStoreStats stats = state_->store.Stats();
  return {.bytes = stats.bytes,
          .entries = stats.entries,
          .evicted_live = stats.evicted_live,
          .evicted_denied = stats.evicted_denied,
          .growths = stats.growths,
          .reservations = stats.reservations,
          .waiters = state_->waiting.size(),
          .shadow_denied = stats.shadow_denied};
}

}  // namespace weir
