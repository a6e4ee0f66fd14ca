// What is different when the state is shared with other processes: many questions travel together,
// because each waits for the store, and charges say in words whom they count.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "engine/blocking_store.h"
#include "engine/denial_notes.h"
#include "engine/engine_state.h"
#include "policy/policy_compiler.h"

namespace weir {
namespace {

// For those who look at all groups together when they are decided.
class Ignored final : public Completion {
 public:
  void OnDecided(Group&) noexcept override {}
};

}  // namespace

void Engine::State::CheckSomeShared(std::span<BatchRequest> requests, Now now) noexcept {
  // Kept, and not merely read: the store may take its time.
  const std::shared_ptr<const PolicyVersion> version = versions.Share();
  const auto calls = std::make_unique<std::array<std::optional<Call>, kMostCallsAtOnce>>();
  std::array<Call::Course, kMostCallsAtOnce> courses{};
  std::array<Group, kMostCallsAtOnce> groups;
  std::size_t submitted = 0;
  const SteadyTime asked_at = clock.Read().steady;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Call& call = (*calls)[i].emplace(*version, hasher, requests[i].request);
    courses[i] = Prepare(call, Verb::kCheck, NearestCost(requests[i].cost));
    if (requests[i].at_once) call.RefuseDelays();
    call.SetAskedAt(asked_at);
    if (courses[i] == Call::Course::kCharges) groups[submitted++] = call.group();
  }
  Ignored completion;
  version->home->store().Submit(std::span(groups).first(submitted), now, completion);
  std::size_t next = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Call& call = *(*calls)[i];
    if (courses[i] != Call::Course::kCharges) {
      FinishUncounted(courses[i], call.cost(), {}, requests[i].answer);
      continue;
    }
    call.group() = std::move(groups[next++]);
    Conclude(call, {}, now, requests[i].each, requests[i].answer);
  }
}

template <std::size_t kRoom>
void Engine::State::CountSharedDenials(CallWithRoom<kRoom>& call) noexcept {
  std::vector<DenialNotes::Denied> denied = DenialNotes::Of(call);
  if (denied.empty()) return;
  Home& home = *call.version().home;
  const SteadyTime until = call.asked_at() + home.place->timeout();
  for (const DenialNotes::Ban& ban :
       home.blocking->CountDenials(call.version().shared_from_this(), std::move(denied), until)) {
    call.Ban(ban.number, ban.length);
  }
}

template void Engine::State::CountSharedDenials(Call&) noexcept;
template void Engine::State::CountSharedDenials(SmallCall&) noexcept;

Charge Engine::State::ChargeFor(const LimitRequest& request, const Limit& limit,
                                SubjectWriter& subject) const noexcept {
  subject.Add("key", request.key);
  return {.key = subject.Finish(),
          .hash = hasher(request.key) ^ limits_scope,
          .limit = &limit,
          .cost = NearestCost(request.cost),
          .verb = VerbOf(request.verb),
          .on_failure = limits_failure_mode.load(std::memory_order_relaxed)};
}

Decision Engine::State::BeyondStore(std::int64_t cost) noexcept {
  return {.allowed = false, .reason = Reason::kNeverFits, .cost = cost, .retry_after = kNever};
}

void Engine::State::CheckSomeSharedLimits(std::span<LimitRequest> requests, Now now) noexcept {
  const std::shared_ptr<const PolicyVersion> version = versions.Share();
  std::array<std::shared_ptr<const Limit>, kMostLimitsAtOnce> limits;
  std::array<SubjectWriter, kMostLimitsAtOnce> subjects;
  InlineVector<Charge, kMostLimitsAtOnce> charges;
  InlineVector<LimitRequest*, kMostLimitsAtOnce> asked;
  std::array<Group, kMostLimitsAtOnce> groups;
  for (LimitRequest& request : requests) {
    const std::size_t number = charges.size();
    {
      const std::scoped_lock lock(limits_mutex);
      limits[number] = shared_limits.Of(*request.limit).value_or(nullptr);
    }
    if (limits[number] == nullptr) {
      request.decision = BeyondStore(NearestCost(request.cost));
      continue;
    }
    charges.emplace_back(ChargeFor(request, *limits[number], subjects[number]));
    groups[number].charges = {&charges.back(), 1};
    groups[number].decisions = {&request.decision, 1};
    asked.emplace_back(&request);
  }
  Ignored completion;
  version->home->store().Submit(std::span(groups).first(charges.size()), now, completion);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    LimitRequest& request = *asked[i];
    if (groups[i].error) {
      request.decision = {.allowed = false,
                          .reason = Reason::kStoreFailure,
                          .source = Source::kClosed,
                          .cost = charges[i].cost};
    }
    request.decision.reservation = groups[i].reservation;
  }
}

Result<std::shared_ptr<Home>> Engine::State::HomeFor(const Policy& policy) {
  const PolicySpec& spec = policy.spec();
  const PolicySpec& before = versions.Current().compiled().spec;
  const std::shared_ptr<Home>& home = homes.current();
  const bool shared = HasSharedStore(spec);
  if (!shared) return home->is_shared() ? HomeInMemory(spec, options, &hasher) : home;
  const bool says_the_same = spec.store == before.store && spec.redis == before.redis;
  if (says_the_same && home->place->IsFor(policy)) return home;
  Result<std::unique_ptr<SharedPlace>> place =
      home->is_shared() ? home->place->Successor(policy)
                        : MakeRedisPlace(policy, options, {.hasher = &hasher});
  if (!place) {
    return std::unexpected(Error{place.error().code, "store: " + place.error().message});
  }
  using Threads = EngineParts::Threads;
  const bool without = home->is_shared() && home->blocking == nullptr;
  return std::make_shared<Home>(*std::move(place), clock, without ? Threads::kNone : Threads::kOwn);
}

void Engine::State::TakeStoreSettings(const PolicySpec& spec, Home& home) {
  const PolicySpec& before = versions.Current().compiled().spec;
  if (spec.hash_secret != before.hash_secret) {
    notices.Tell("hash_secret: under another secret all keys that are hashed start anew");
  }
  if (spec.memory.cap != before.memory.cap) {
    const CapChange cap = home.SetCap(static_cast<std::size_t>(spec.memory.cap), clock.Read());
    if (!cap.within_cap) {
      notices.Tell("memory: cap: " + std::to_string(cap.bytes) +
                   " bytes are in use and stay so; only a new start makes them fewer");
    }
  }
  if (home.is_shared()) home.place->SetFleetSize(spec.fleet_size);
}

StoreHealth Engine::Health() const {
  const auto version = state_->versions.Read();
  if (!version->is_shared()) return {};
  StoreHealth health = version->home->place->Health(state_->clock.Read().steady);
  health.shared = true;
  return health;
}

}  // namespace weir
