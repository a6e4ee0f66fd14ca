// A policy in force: the compiled one, and its limits as successors of those before them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <weir/identity.h>
#include <weir/policy.h>

#include "base/hash.h"
#include "engine/succession.h"
#include "store/store.h"

namespace weir {

class CompiledPolicy;
class MemoryStore;
struct Home;
struct PolicyChange;

// What an engine adds to a rule.
struct RuleInForce {
  std::string_view name;        // Kept by the engine for good.
  std::string_view message;     // Likewise.
  std::uint64_t scope = 0;      // Sets its keys apart from those of other rules,
  std::uint64_t ban_scope = 0;  // and what its bans are counted by from those.
  std::uint64_t denials_scope = 0;
  std::uint64_t steps_scope = 0;
  std::uint32_t counter_row = 0;  // Where its decisions are counted.
  std::uint32_t plan = 0;         // Of its key, as in the compiled rule.
  bool enforced = true;           // Likewise.
  bool plain = false;  // Nothing depends on the request but whom it counts: most rules are so.
  std::vector<Limit> limits;  // As in the compiled rule; all of one generation.
};

// Immutable once others can see it.
struct PolicyVersion : std::enable_shared_from_this<PolicyVersion> {
  explicit PolicyVersion(Policy its_policy) : policy(std::move(its_policy)) {}

  // Whether other processes decide by the same state.
  bool is_shared() const noexcept { return memory == nullptr; }

  Policy policy;
  std::shared_ptr<Home> home{};   // Where what is decided under it is counted.
  MemoryStore* memory = nullptr;  // There, unless it is shared.
  std::uint64_t number = 1;
  std::vector<RuleInForce> rules{};
  std::vector<LimitInForce> in_force{};   // By their rules, ascending.
  std::vector<std::string_view> names{};  // Of all rules, those that are off included; sorted.
  std::vector<std::uint32_t> queues{};    // The numbers of the rules that do.
  std::optional<Identity> identity{};

  const CompiledPolicy& compiled() const noexcept { return policy.compiled(); }
};

// Texts that stay for good. Not thread-safe.
class TextKeeper;
class RuleCounters;

// By the name of a rule, what it counted by when it last counted anything: a rule that is switched
// off or refuses everybody for a while goes on where it was.
using LastLimits = std::unordered_map<std::string_view, Limit>;

// By the name of a rule, what it counted by in a process before this one.
using LimitsBefore = std::map<std::string, RuleLimits, std::less<>>;

// The version after `before`, which is null for the first, and what changed.
struct VersionContext {
  const KeyHasher& hasher;
  TextKeeper& texts;
  RuleCounters& counters;
  LastLimits& last_limits;
  Now now;
  bool shared = false;  // Limits are to be as a shared store counts them.
  bool moves = false;   // Nothing that was counted before is known where it is counted from now on.
  const LimitsBefore* limits_before = nullptr;  // For the first version.
};
std::unique_ptr<PolicyVersion> MakeVersion(const Policy& policy, const PolicyVersion* before,
                                           const VersionContext& context, PolicyChange& change);

}  // namespace weir
