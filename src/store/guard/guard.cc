#include "store/guard/guard.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "store/guard/guard_state.h"
#include "store/memory/memory_store.h"
#include "store/memory/reservations.h"

namespace weir {
namespace {

MemoryStoreOptions LocalOptions(const GuardOptions& options) noexcept {
  return {.cap_bytes = std::clamp(options.cap_bytes, kMinCapBytes, kMaxCapBytes),
          .max_reservations = options.max_reservations,
          .hash_seed = options.seed,
          .hasher = options.hasher};
}

// 12.3 s
std::string TextOf(Duration time) {
  const std::int64_t tenths = RoundUpTo<std::chrono::duration<std::int64_t, std::deci>>(time);
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " s";
}

}  // namespace

Guard::State::State(const GuardOptions& options, Now start)
    : options_(options),
      fleet_size_(options.fleet_size),
      local_(std::make_unique<MemoryStore>(LocalOptions(options), start)),
      leases_(std::min(options.max_reservations, Reservations::kMostRecords)) {}

Guard::State::~State() = default;

void Guard::State::NoteFailure(const Error& error, SteadyTime now) noexcept {
  if (!degraded_.NoteFailure(now)) return;
  const std::scoped_lock lock(mutex_);
  if (!degraded_.Begin(now)) return;
  before_ = stats();
  Say(TextOfBegin(error));
}

void Guard::State::EndDegradedTime(SteadyTime now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (const std::optional<Duration> lasted = degraded_.End(now)) Say(TextOfEnd(*lasted));
}

std::string Guard::State::TextOfBegin(const Error& error) const {
  const int nodes = fleet_size();
  std::string text = "the store failed (" + error.message +
                     "); until it is back each rule does as its on_store_failure says: static "
                     "allows 1/" +
                     std::to_string(nodes) +
                     " of the limit in this process, open lets everything through, closed refuses "
                     "everything";
  if (fleet_size_.load(std::memory_order_relaxed) <= 0 && members_.value() == 0) {
    text +=
        ". NOBODY HAS COUNTED how many processes share the store, so this one takes itself for the "
        "only one and allows the whole limit: write fleet_size into the policy";
  }
  return text;
}

std::string Guard::State::TextOfEnd(Duration lasted) const {
  const Stats now = stats();
  return "the store answers again after " + TextOf(lasted) +
         "; decided in its place meanwhile: " + std::to_string(now.fallback - before_.fallback) +
         " static, " + std::to_string(now.open - before_.open) + " open, " +
         std::to_string(now.closed - before_.closed) +
         " closed. Nothing is replayed: a key under static may have one burst more than its limit "
         "now, as it may have had when the store went";
}

void Guard::State::Say(const std::string& text) const noexcept {
  if (options_.on_notice) options_.on_notice(text);
}

void Guard::State::NoteDecided(FailureMode mode) noexcept {
  switch (mode) {
    case FailureMode::kOpen:
      return open_.Add();
    case FailureMode::kClosed:
      return closed_.Add();
    default:
      return fallback_.Add();
  }
}

void Guard::State::NoteMembers(int members, SteadyTime now) noexcept {
  const std::scoped_lock lock(mutex_);
  members_.Note(members, now);
}

int Guard::State::fleet_size() const noexcept {
  const int set = fleet_size_.load(std::memory_order_relaxed);
  return set > 0 ? set : std::max(1, members_.value());
}

Guard::Stats Guard::State::stats() const noexcept {
  return {.open = open_.Value(),
          .closed = closed_.Value(),
          .fallback = fallback_.Value(),
          .degraded_times = degraded_.times(),
          .local = local_->Stats()};
}

Guard::Guard(const GuardOptions& options, Clock& clock)
    : state_(std::make_shared<State>(options, clock.Read())) {}
Guard::Guard(std::shared_ptr<State> state) : state_(std::move(state)) {}
Guard::~Guard() = default;

const KeyHasher& Guard::hasher() const noexcept { return state_->local().hasher(); }
bool Guard::IsDegraded() const noexcept { return state_->degraded().IsOn(); }
Duration Guard::DegradedFor(SteadyTime now) const noexcept {
  return state_->degraded().Lasted(now);
}
int Guard::fleet_size() const noexcept { return state_->fleet_size(); }
void Guard::SetFleetSize(int size) noexcept { state_->SetFleetSize(size); }
CapChange Guard::SetCap(std::size_t bytes, Now now) noexcept {
  return state_->local().SetCap(bytes, now);
}
Guard::Stats Guard::stats() const noexcept { return state_->stats(); }

}  // namespace weir
