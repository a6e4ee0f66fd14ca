// What is different when the state is shared with other processes: many questions travel together,
// because each waits for the store, and charges say in words whom they count.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "engine/engine_state.h"

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
  store().Submit(std::span(groups).first(submitted), now, completion);
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
  const SteadyTime until = call.asked_at() + place->timeout();
  for (const DenialNotes::Ban& ban :
       blocking->CountDenials(call.version().shared_from_this(), std::move(denied), until)) {
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
  store().Submit(std::span(groups).first(charges.size()), now, completion);
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

void Engine::State::TakeStoreSettings(const PolicySpec& spec) {
  // The addresses may hold passwords.
  if (spec.store != first_spec.store) {
    notices.Tell(
        "store: another one was written, but a store does not change while it is in use; "
        "start again for that");
  }
  if (is_shared() && spec.redis != first_spec.redis) {
    notices.Tell(
        "redis: settings of a store do not change while it is in use; start again for "
        "that");
  }
  if (spec.memory.cap != first_spec.memory.cap) {
    notices.Tell(
        "memory: cap is that of the start, when room is set aside for it; start again to "
        "change it");
  }
  if (spec.hash_secret != versions.Current().compiled().spec.hash_secret) {
    notices.Tell("hash_secret: under another secret all keys that are hashed start anew");
  }
  if (is_shared()) place->SetFleetSize(spec.fleet_size);
}

StoreHealth Engine::Health() const {
  if (!state_->is_shared()) return {};
  StoreHealth health = state_->place->Health(state_->clock.Read().steady);
  health.shared = true;
  return health;
}

}  // namespace weir
