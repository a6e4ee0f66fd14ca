// What an Engine is made of.
#pragma once

#include <mutex>

#include <weir/engine.h>

#include "engine/call.h"
#include "engine/notices.h"
#include "engine/policy_version.h"
#include "engine/text_keeper.h"
#include "engine/versions.h"
#include "store/memory/memory_store.h"

namespace weir {

struct Engine::State {
  State(const Policy& policy, const EngineOptions& options);

  Answer Do(const Request& request, const Ask& ask, Verb verb,
            std::span<RuleDecision> each) noexcept {
    return DoUnder(*versions.Read(), request, ask, {.verb = verb}, each);
  }
  // What is done, and for how long it is remembered.
  struct Deed {
    Verb verb = Verb::kCheck;
    Action action = Action::kDecide;
    Duration ttl{0};
  };
  Answer DoUnder(const PolicyVersion& version, const Request& request, const Ask& ask,
                 const Deed& deed, std::span<RuleDecision> each) noexcept;
  // Some at a time, because their charges are kept in place.
  static constexpr std::size_t kMostLimitsAtOnce = 32;
  void CheckSomeLimits(std::span<LimitRequest> requests, Now now) noexcept;
  Result<Decision> Settle(Action action, ReservationId reservation, std::int64_t cost);
  void NoteUnknownTier(std::string_view tier) noexcept;
  void NoteTooMany() noexcept;

  struct Next {
    std::unique_ptr<PolicyVersion> version{};
    PolicyChange change{};
  };
  Next NextVersion(const Policy& policy, const PolicyVersion* before);

  Now When(const Ask& ask) const noexcept { return ask.now ? *ask.now : clock.Read(); }

  Clock& clock;
  MemoryStore store;
  const std::uint64_t limits_scope;  // Of keys whose limits come with the requests.
  Notices notices;
  std::mutex change;  // Held by whoever replaces the policy.
  TextKeeper texts;
  LastLimits last_limits;
  Versions<PolicyVersion> versions;
};

}  // namespace weir
