#include <weir/engine.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/inline_vector.h"
#include "base/mix.h"
#include "engine/bans.h"
#include "engine/blocking_store.h"
#include "engine/engine_state.h"
#include "engine/snapshot_head.h"
#include "limit/limit_words.h"
#include "policy/policy_compiler.h"
#include "policy/store_address.h"
#include "store/key_hashes.h"
#include "store/memory/memory_store.h"

namespace weir {
namespace {

// Whether it may leave more for others.
bool GivesBack(Verb verb) noexcept { return verb == Verb::kRefund || verb == Verb::kReset; }

// Those who wait leave room for those who do not: what a store has no room for is answered in its
// place.
std::size_t MostAttempts(const RedisSpec& redis) {
  const std::int64_t room = std::int64_t{redis.connections} * redis.max_in_flight;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(room / 2, 1, std::int64_t{Waiting::kMostAttempts}));
}

Waiting::Attempts AttemptsIn(const Home& home) {
  return home.is_shared() ? Waiting::Attempts::kTakeAWhile : Waiting::Attempts::kAtOnce;
}

LastLimits LastOf(const SnapshotHead* past, TextKeeper& texts) {
  LastLimits last;
  if (past == nullptr) return last;
  for (const auto& [rule, limit] : past->last_limits) last.emplace(texts.Keep(rule), limit);
  return last;
}

}  // namespace

std::shared_ptr<Home> Engine::State::HomeInMemory(const PolicySpec& spec,
                                                  const EngineOptions& options,
                                                  const KeyHasher* hasher) {
  MemoryStoreOptions its{.cap_bytes = static_cast<std::size_t>(spec.memory.cap),
                         .max_reservations = options.max_reservations};
  if (hasher != nullptr) its.hasher = *hasher;
  return std::make_shared<Home>(its, ClockOf(options).Read());
}

Engine::State::State(const Policy& policy, const EngineOptions& its_options,
                     std::shared_ptr<Home> home, const SnapshotHead* past)
    : options(its_options),
      clock(ClockOf(options)),
      hasher(home->is_shared() ? home->place->hasher() : home->memory->hasher()),
      // No rule's name holds a colon.
      limits_scope(Mix(hasher("limits:"))),
      notices(options.on_notice),
      top_denied(clock.Read().steady),
      last_limits(LastOf(past, texts)),
      versions(
          NextVersion(policy, home, nullptr, past != nullptr ? &past->rules : nullptr).version),
      homes(std::move(home)),
      waiting(clock, options.max_waiters, AttemptsIn(*homes.current()),
              MostAttempts(policy.spec().redis)) {
  is_shared = homes.current()->is_shared();
}

Engine::State::Next Engine::State::NextVersion(const Policy& policy, std::shared_ptr<Home> home,
                                               const PolicyVersion* before,
                                               const LimitsBefore* limits_before) {
  Next next;
  // Servers know what they knew; limits there go on from those before.
  const bool moves = before != nullptr && before->is_shared() != home->is_shared();
  next.version = MakeVersion(policy, before,
                             {.hasher = hasher,
                              .texts = texts,
                              .counters = counters,
                              .last_limits = last_limits,
                              .now = clock.Read(),
                              .shared = home->is_shared(),
                              .moves = moves,
                              .limits_before = limits_before},
                             next.change);
  next.version->memory = home->memory.get();
  next.version->home = std::move(home);
  if (limits_before != nullptr) TellStartedAnew(next.change);
  limits_failure_mode = policy.spec().on_store_failure;
  IdentityOptions identity;
  identity.warn = [this](std::string_view text) {
    if (notices.IsFirst(Notices::Kind::kForwardingIgnored)) notices.Tell(text);
  };
  // The policy was made, so all that this reads was found to be right.
  next.version->identity = *Identity::Make(policy.spec(), std::move(identity));
  return next;
}

Engine::Engine(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<void> Engine::State::CheckOptions(const EngineOptions& options) {
  if (options.max_reservations <= Reservations::kMostRecords) return {};
  return std::unexpected(
      Error{ErrorCode::kInvalidArgument,
            "max_reservations: write at most " + std::to_string(Reservations::kMostRecords)});
}

Result<Engine> Engine::Make(const Policy& policy, const EngineOptions& options) {
  const auto invalid = [](std::string message) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
  };
  if (Result<void> right = State::CheckOptions(options); !right) {
    return std::unexpected(right.error());
  }
  if (!HasSharedStore(policy.spec())) {
    return Engine(
        std::make_unique<State>(policy, options, State::HomeInMemory(policy.spec(), options)));
  }
  Result<std::unique_ptr<SharedPlace>> place = MakeRedisPlace(policy, options);
  if (!place) return invalid("store: " + place.error().message);
  return EngineParts::Make(policy, options, *std::move(place));
}

Engine EngineParts::Make(const Policy& policy, const EngineOptions& options,
                         std::unique_ptr<SharedPlace> place, Threads threads) {
  return Engine(std::make_unique<State>(
      policy, options, std::make_shared<Home>(std::move(place), State::ClockOf(options), threads)));
}

Engine EngineParts::MakeInMemory(const Policy& policy, const EngineOptions& options,
                                 const KeyHasher& hasher) {
  return Engine(std::make_unique<State>(policy, options,
                                        State::HomeInMemory(policy.spec(), options, &hasher)));
}

Answer Engine::State::AnswerWithoutCounting(Call::Course course, std::int64_t cost) noexcept {
  Decision decision{.cost = cost};
  switch (course) {
    case Call::Course::kAllowList:
      decision.allowed = true;
      decision.reason = Reason::kAllowList;
      break;
    case Call::Course::kDenyList:
      decision.reason = Reason::kDenyList;
      decision.retry_after = kNever;
      break;
    case Call::Course::kTooMany:
      decision.reason = Reason::kOverload;
      decision.retry_after = kNever;
      break;
    default:
      decision.allowed = true;
      decision.reason = Reason::kNoRule;
      break;
  }
  return {.decision = decision};
}

template <std::size_t kRoom>
CallTypes::Course Engine::State::Prepare(CallWithRoom<kRoom>& call, Verb verb,
                                         std::int64_t cost) noexcept {
  const Call::Course course = call.Prepare(verb, cost);
  if (call.has_unknown_tier()) NoteUnknownTier(call.stated_tier());
  if (kRoom == kMaxGroupCharges && course == Call::Course::kTooMany) NoteTooMany();
  if (call.version().is_shared() && course == Call::Course::kCharges) call.NameCharges();
  return course;
}

template Call::Course Engine::State::Prepare(Call&, Verb, std::int64_t) noexcept;
template Call::Course Engine::State::Prepare(SmallCall&, Verb, std::int64_t) noexcept;

template <std::size_t kRoom>
void Engine::State::CountDenials(CallWithRoom<kRoom>& call, Now now) noexcept {
  const PolicyVersion& version = call.version();
  if (version.is_shared()) return CountSharedDenials(call);
  for (std::size_t i = call.NextDenial(0); i < call.rules(); i = call.NextDenial(i + 1)) {
    const Duration length = CountDenial(version, call.DenialUnder(i), *version.memory, now);
    if (length > Duration(0)) call.Ban(i, length);
  }
}

template void Engine::State::CountDenials(Call&, Now) noexcept;
template void Engine::State::CountDenials(SmallCall&, Now) noexcept;

template <std::size_t kRoom>
void Engine::State::NoteOutcome(CallWithRoom<kRoom>& call, Now now) noexcept {
  const RuleCounters::Cell cell = counters.OfThisThread();
  call.ForEachRule([&](std::size_t number, const RuleInForce& rule, const Charge& charge,
                       const Decision& decision) {
    if (decision.allowed) [[likely]] {
      cell.Add(rule.counter_row, RuleCounters::Outcome::kAllowed);
    } else if (charge.shadow) {
      cell.Add(rule.counter_row, RuleCounters::Outcome::kShadowDenied);
    } else {
      cell.Add(rule.counter_row, RuleCounters::Outcome::kDenied);
      top_denied.Add({.hash = charge.hash, .rule = rule.name, .key = call.SubjectOf(number)},
                     now.steady);
    }
  });
}

template void Engine::State::NoteOutcome(Call&, Now) noexcept;
template void Engine::State::NoteOutcome(SmallCall&, Now) noexcept;

void Engine::State::NoteOutcome(Call::Course course) noexcept {
  const RuleCounters::Cell cell = counters.OfThisThread();
  switch (course) {
    case Call::Course::kAllowList:
      cell.Add(RuleCounters::Unruled::kAllowList);
      break;
    case Call::Course::kDenyList:
      cell.Add(RuleCounters::Unruled::kDenyList);
      break;
    case Call::Course::kNoRule:
      cell.Add(RuleCounters::Unruled::kNoRule);
      break;
    default:
      break;
  }
}

void Engine::State::Decide(const PolicyVersion& version, Group& group, Now now) noexcept {
  if (version.memory != nullptr) [[likely]] {
    version.memory->Decide(group, now);
  } else {
    SubmitOne(*version.home->blocking, group, now);
  }
}

void Engine::State::Prefetch(const PolicyVersion& version, const Group& group) noexcept {
  if (version.memory != nullptr) [[likely]]
    version.memory->Prefetch(group);
}

Answer Engine::State::DoUnder(const PolicyVersion& version, const Request& request, const Ask& ask,
                              const Deed& deed, std::span<RuleDecision> each) noexcept {
  const Now now = When(ask);
  const std::int64_t cost = NearestCost(ask.cost);
  Call call(version, hasher, request);
  const Call::Course course = Prepare(call, deed.verb, cost);
  if (course == Call::Course::kCharges) Prefetch(version, call.group());
  Answer answer;
  Finish(call, course, deed, now, each, answer);
  if (course == Call::Course::kCharges && GivesBack(deed.verb)) {
    KeyHashes given_back;
    call.ListKeys(given_back);
    waiting.Nudge(given_back.span());
  }
  return answer;
}

void Engine::State::Finish(Call& call, Call::Course course, const Deed& deed, Now now,
                           std::span<RuleDecision> each, Answer& answer) noexcept {
  if (course != Call::Course::kCharges) return FinishUncounted(course, call.cost(), deed, answer);
  Group& group = call.group();
  group.action = deed.action;
  group.ttl = deed.ttl;
  if (call.version().is_shared()) [[unlikely]]
    call.SetAskedAt(clock.Read().steady);
  Decide(call.version(), group, now);
  Conclude(call, deed, now, each, answer);
}

void Engine::State::FinishUncounted(Call::Course course, std::int64_t cost, const Deed& deed,
                                    Answer& answer) noexcept {
  if (deed.verb == Verb::kCheck) NoteOutcome(course);
  answer = AnswerWithoutCounting(course, cost);
}

void Engine::State::Conclude(Call& call, const Deed& deed, Now now, std::span<RuleDecision> each,
                             Answer& answer) noexcept {
  if (call.version().is_shared() && call.group().error) [[unlikely]]
    call.Fail();
  call.TakeUpBans();
  if (deed.verb == Verb::kCheck && !call.group().decision.allowed) {
    // The request that leads to a ban is told of it: there is no use in coming back earlier.
    CountDenials(call, now);
  }
  if (deed.verb == Verb::kCheck) NoteOutcome(call, now);
  call.Conclude(each, answer);
}

void Engine::State::NoteUnknownTier(std::string_view tier) noexcept {
  if (!notices.IsNewTier(hasher(tier))) return;
  notices.Tell("tier " + Quoted(tier) + " is not known; the default tier counts instead");
}

void Engine::State::NoteTooMany() noexcept {
  if (!notices.IsFirst(Notices::Kind::kTooManyRules)) return;
  notices.Tell("more than " + std::to_string(kMaxGroupCharges) +
               " rules match one request, which is refused; narrow their matches");
}

Answer Engine::Check(const Request& request, const Ask& ask, std::span<RuleDecision> each) {
  return state_->Do(request, ask, Verb::kCheck, each);
}
Answer Engine::Check(const Incoming& incoming, IdentityStorage& storage, const Ask& ask,
                     std::span<RuleDecision> each) {
  const auto version = state_->versions.Read();
  const Request request = version->identity->Identify(incoming, storage);
  return state_->DoUnder(*version, request, ask, {}, each);
}

void Engine::CheckBatch(std::span<BatchRequest> requests, Now now) {
  if (!requests.empty()) state_->CheckBatch(requests, now);
}

void Engine::State::CheckBatch(std::span<BatchRequest> requests, Now now) noexcept {
  {
    const auto version = versions.Read();
    if (!version->is_shared()) [[likely]]
      return CheckBatchUnder(*version, requests, now);
  }
  for (; !requests.empty();
       requests = requests.subspan(std::min(requests.size(), kMostCallsAtOnce))) {
    CheckSomeShared(requests.first(std::min(requests.size(), kMostCallsAtOnce)), now);
  }
}

// While the memory of one request's keys is fetched, the next one is prepared.
void Engine::State::CheckBatchUnder(const PolicyVersion& version, std::span<BatchRequest> requests,
                                    Now now) noexcept {
  struct Started {
    std::optional<Call> call;
    Call::Course course;
  };
  std::array<Started, 2> started;
  const auto start = [&](std::size_t number) {
    const BatchRequest& item = requests[number];
    auto& [call, course] = started[number % 2];
    call.emplace(version, hasher, item.request);
    course = Prepare(*call, Verb::kCheck, NearestCost(item.cost));
    if (item.at_once) call->RefuseDelays();
    if (course == Call::Course::kCharges) Prefetch(version, call->group());
  };
  start(0);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i + 1 < requests.size()) start(i + 1);
    auto& [call, course] = started[i % 2];
    const Duration later = requests[i].later;
    Finish(*call, course, {}, {.steady = now.steady + later, .wall = now.wall + later},
           requests[i].each, requests[i].answer);
  }
}

void Engine::CheckLimits(std::span<LimitRequest> requests, Now now) {
  while (!requests.empty()) {
    const std::size_t count = std::min(requests.size(), State::kMostLimitsAtOnce);
    state_->CheckSomeLimits(requests.first(count), now);
    requests = requests.subspan(count);
  }
}

void Engine::State::CheckSomeLimits(std::span<LimitRequest> requests, Now now) noexcept {
  {
    const auto version = versions.Read();
    if (!version->is_shared()) [[likely]]
      return CheckSomeLimitsIn(*version->memory, requests, now);
  }
  CheckSomeSharedLimits(requests, now);
}

void Engine::State::CheckSomeLimitsIn(MemoryStore& memory, std::span<LimitRequest> requests,
                                      Now now) noexcept {
  InlineVector<Charge, kMostLimitsAtOnce> charges;
  InlineVector<Decision, kMostLimitsAtOnce> decisions;
  for (const LimitRequest& request : requests) {
    charges.emplace_back(Charge{.key = request.key,
                                .hash = hasher(request.key) ^ limits_scope,
                                .limit = request.limit,
                                .cost = NearestCost(request.cost),
                                .verb = VerbOf(request.verb)});
    decisions.emplace_back_unset();
  }
  memory.DecideEach(charges.span(), now, decisions.span());
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].decision = decisions[i];
}

Answer Engine::Peek(const Request& request, const Ask& ask, std::span<RuleDecision> each) {
  return state_->Do(request, ask, Verb::kPeek, each);
}
Answer Engine::Refund(const Request& request, const Ask& ask) {
  return state_->Do(request, ask, Verb::kRefund, {});
}
Answer Engine::Penalize(const Request& request, const Ask& ask) {
  return state_->Do(request, ask, Verb::kPenalize, {});
}
Answer Engine::Reset(const Request& request, const Ask& ask) {
  return state_->Do(request, ask, Verb::kReset, {});
}
Answer Engine::Reserve(const Request& request, const Ask& ask, Duration ttl) {
  const Duration nearest = std::clamp(ttl, Duration(0), Duration(kMaxPeriod));
  return state_->DoUnder(*state_->versions.Read(), request, ask,
                         {.action = Action::kReserve, .ttl = nearest}, {});
}

Result<Decision> Engine::State::Settle(Action action, ReservationId reservation,
                                       std::optional<std::int64_t> cost, Home* home) {
  std::array<std::uint64_t, kMaxGroupCharges> settled;
  const auto version = versions.Read();
  Group group{.action = action,
              .in_force = version->in_force,
              .reservation = reservation,
              .cost = NearestCost(cost.value_or(0)),
              .keeps_cost = !cost,
              .settled = settled};
  SubmitOne((home != nullptr ? *home : *version->home).store(), group, clock.Read());
  if (group.error) return std::unexpected(*group.error);
  waiting.Nudge(std::span(settled).first(group.settled_count));
  return group.decision;
}

Result<Decision> Engine::Commit(ReservationId reservation, std::int64_t cost) {
  return state_->Settle(Action::kCommit, reservation, cost);
}
Result<Decision> Engine::Commit(ReservationId reservation) {
  return state_->Settle(Action::kCommit, reservation, std::nullopt);
}
Result<Decision> Engine::Cancel(ReservationId reservation) {
  return state_->Settle(Action::kCancel, reservation, 0);
}

void Engine::State::TakeUpHome(const Home& home, const PolicySpec& spec) {
  is_shared = home.is_shared();
  waiting.SetAttempts(AttemptsIn(home), MostAttempts(spec.redis));
}

Result<PolicyChange> Engine::Apply(const Policy& policy) { return state_->Apply(policy); }

Result<PolicyChange> Engine::State::Apply(const Policy& policy) {
  const std::scoped_lock lock(change);
  Result<std::shared_ptr<Home>> home = HomeFor(policy);
  if (!home) return std::unexpected(std::move(home.error()));
  const PolicyVersion& before = versions.Current();
  const PolicySpec& spec = policy.spec();
  TakeStoreSettings(spec, **home);
  auto [version, changed] = NextVersion(policy, *home, &before);
  changed.store_changed = !KeepSameState(spec.store, before.compiled().spec.store);
  // Who asks later although he need not is answered all the same; who waits for servers on a loop
  // holds up others.
  const bool moves_out = (*home)->is_shared();
  if (*home != homes.current() && (*home)->blocking != nullptr) {
    (*home)->blocking->AwaitSettled((*home)->place->time_to_settle());
  }
  if (moves_out) TakeUpHome(**home, spec);
  versions.Replace(std::move(version));
  if (!moves_out) TakeUpHome(**home, spec);
  if (*home != homes.current()) homes.MoveTo(*std::move(home));
  waiting.NudgeAll();
  TellStartedAnew(changed);
  return changed;
}

void Engine::State::TellStartedAnew(const PolicyChange& what) {
  for (const std::string& rule : what.started_anew) {
    notices.Tell("the rule " + Quoted(rule) +
                 " counts in another way now, so all of its keys start anew");
  }
}

Policy Engine::policy() const { return state_->versions.Read()->policy; }

Identity Engine::identity() const { return *state_->versions.Read()->identity; }

std::vector<RuleCount> Engine::RuleCounts() const { return state_->counters.Read(); }

std::vector<DeniedKey> Engine::TopDenied(std::size_t most) const {
  return state_->top_denied.Read(most, state_->clock.Read().steady);
}

bool Engine::HasRule(std::string_view name) const {
  return std::ranges::binary_search(state_->versions.Read()->names, name);
}

EngineStats Engine::Stats() const {
  const auto version = state_->versions.Read();
  const MemoryStoreStats stats =
      version->is_shared() ? version->home->place->LocalStats() : version->memory->Stats();
  return {.store = {.bytes = stats.bytes,
                    .entries = stats.entries,
                    .evicted_live = stats.evicted_live,
                    .evicted_denied = stats.evicted_denied,
                    .growths = stats.growths,
                    .reservations = stats.reservations,
                    .waiters = state_->waiting.size(),
                    .shadow_denied = stats.shadow_denied},
          .version = version->number};
}

}  // namespace weir
