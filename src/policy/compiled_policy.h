// A policy with everything worked out that does not depend on the request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/limit.h>
#include <weir/policy_spec.h>

#include "base/hash.h"
#include "policy/attribute.h"
#include "policy/facts.h"
#include "policy/key_plan.h"
#include "policy/keyed_hash.h"
#include "policy/matcher.h"
#include "policy/overrides.h"

namespace weir {

// What a ban needs: all of it is counted by ordinary limits.
struct BlockPlan {
  Limit denials;               // Full when there were too many.
  std::vector<Limit> lengths;  // One unit lasts as long as the ban: the first, the second time.
  std::optional<Limit> steps;  // How often it has happened lately; none if bans do not grow.

  // Whether a ban is in force is asked under the longest.
  const Limit& longest() const noexcept { return lengths.back(); }
};

// Where the limit of a request came from, for those who ask why.
enum class LimitOrigin : std::uint8_t { kRule, kTier, kOverride };

struct CompiledRule {
  std::string name;
  std::string message;
  std::uint32_t spec = 0;  // Its number among the rules of the spec.
  std::uint32_t key = 0;   // Its number among the plans of the policy.
  bool enforced = true;
  Unidentified unidentified = Unidentified::kShare;
  FailureMode on_store_failure = FailureMode::kStatic;
  // The share of keys that it is enforced for. The rest are counted as a shadow would be.
  double share = 1;
  std::vector<std::uint32_t> tiers{};  // By the number of the tier: which of `limits`.
  std::shared_ptr<const OverrideTable> overrides{};
  // What every request needs of the rule stands before this, close together.
  std::optional<CostSpec> cost{};
  Attribute cost_attribute{};
  // The rule's own or its default tier's; those of the other tiers; those of overrides.
  std::vector<Limit> limits{};
  std::optional<KeyHasher> share_hash{};  // By which the share is chosen; none if it is all.
  std::optional<BlockPlan> block{};

  // What one request costs under this rule. `stated` is what the request as a whole says.
  std::int64_t CostOf(const Facts& facts, std::int64_t stated) const noexcept {
    return !cost || stated == 0 ? stated : OwnCostOf(facts);
  }
  // Whether the cost is the rule's own, so that a commit does not change it.
  bool HasOwnCost() const noexcept { return cost.has_value(); }
  // Whether what it does depends on more of the key than that it is another's. Otherwise the
  // subject in what follows may be empty.
  bool NeedsSubject() const noexcept { return overrides != nullptr || share < 1; }
  // Whether the key is among those for which the rule is enforced.
  bool EnforcedFor(std::string_view subject) const noexcept {
    return enforced && (share >= 1 || IsInShare(subject));
  }

 private:
  std::int64_t OwnCostOf(const Facts& facts) const noexcept;
  bool IsInShare(std::string_view subject) const noexcept;
};

class CompiledPolicy {
 public:
  PolicySpec spec;
  std::string folder;  // Where files are looked for that the spec names.
  std::vector<std::string> files;

  // Numbered: first the allow list, then the deny list, then the rules that are not off.
  std::optional<Matcher> matcher;
  std::uint32_t allow_count = 0;
  std::uint32_t deny_count = 0;
  std::vector<CompiledRule> rules;
  std::vector<KeyPlan> keys;

  std::vector<std::string> tiers;  // Sorted.
  std::uint32_t default_tier = 0;
  std::string default_tier_name;  // Empty if there is none.
  std::shared_ptr<const KeyedHash> hash;

  std::uint32_t first_rule() const noexcept { return allow_count + deny_count; }
  const CompiledMatch& MatchOf(std::uint32_t rule) const noexcept {
    return (*matcher)[first_rule() + rule];
  }

  struct Tier {
    std::uint32_t number;
    bool known;  // Or the default, because there is none of the request's name.
  };
  Tier TierOf(std::string_view name) const noexcept;
  // Who has no tier, or one that does not exist, has the default one wherever that is asked.
  Request WithTierThatCounts(const Request& request) const noexcept;

  struct ChosenLimit {
    std::uint32_t number;  // Among the rule's.
    LimitOrigin origin;
    std::uint32_t row;  // Of the override.
  };
  // In place, because handing over the result takes longer than most choices.
  ChosenLimit ChooseLimit(const CompiledRule& rule, std::string_view subject,
                          std::uint32_t tier) const noexcept {
    if (rule.overrides != nullptr) {
      if (const OverrideTable::Entry* entry = rule.overrides->Find(subject)) {
        return {.number = entry->limit, .origin = LimitOrigin::kOverride, .row = entry->row};
      }
    }
    if (rule.tiers.empty()) return {.number = 0, .origin = LimitOrigin::kRule, .row = 0};
    return {.number = rule.tiers[tier], .origin = LimitOrigin::kTier, .row = 0};
  }
};

}  // namespace weir
