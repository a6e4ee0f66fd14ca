#include "policy/policy_compiler.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include <weir/identity.h>

#include "limit/limit_words.h"
#include "policy/rule_compiler.h"
#include "policy/store_address.h"

namespace weir {
namespace {

// For hashed keys that never leave this process. Drawn once, so that a policy that is read again
// counts under the same keys.
std::shared_ptr<const KeyedHash> ProcessHash() {
  static const auto kHash = std::make_shared<const KeyedHash>(KeyedHash::Random());
  return kHash;
}

std::shared_ptr<const KeyedHash> HashOf(const PolicySpec& spec, const std::string& folder,
                                        ProblemList& problems) {
  constexpr std::string_view kFile = "file:";
  if (spec.hash_secret.empty()) return ProcessHash();
  std::string source = spec.hash_secret;
  if (source.starts_with(kFile) && source.size() > kFile.size()) {
    source = std::string(kFile) + PathIn(folder, source.substr(kFile.size()));
  }
  Result<std::string> secret = ReadSecret(source);
  if (secret) return std::make_shared<const KeyedHash>(*secret);
  const Where top;
  problems.Add(ProblemCode::kBadSecret, Where(top, "hash_secret"), secret.error().message);
  return ProcessHash();
}

// One request may be counted under so many rules; each that bans needs two places.
constexpr std::size_t kMostUnconditional = 32;
constexpr std::size_t kMaxTierNameBytes = 256;

void CheckTierNames(const PolicySpec& spec, ProblemList& problems) {
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.size() <= kMaxTierNameBytes;
  };
  const auto check = [&](const Where& where, const std::string& name) {
    if (is_name(name)) return;
    problems.Add(ProblemCode::kBadName, where,
                 "the name " + Quoted(name) + " is not allowed; write 1 to " +
                     std::to_string(kMaxTierNameBytes) + " bytes",
                 Where::Point::kKey);
  };
  const Where top;
  const Where tiers(top, "tiers");
  for (const auto& [name, limits] : spec.tiers) {
    const Where tier(tiers, name);
    check(tier, name);
    for (const auto& [limit, text] : limits) check(Where(tier, limit), limit);
  }
}

// How a limit that no rule uses would count is not known, but some way must fit it.
void CheckUnusedTierLimits(const PolicySpec& spec, ProblemList& problems) {
  const Where top;
  const Where tiers(top, "tiers");
  for (const auto& [name, limits] : spec.tiers) {
    const Where tier(tiers, name);
    for (const auto& [limit, text] : limits) {
      if (std::ranges::find(spec.rules, limit, &RuleSpec::tier_limit) != spec.rules.end()) continue;
      const Result<Limit> plain = Limit::Parse(text);
      const LimitSpec by_calendar{.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendar};
      if (plain || Limit::Parse(text, by_calendar)) continue;
      problems.Add(ProblemCode::kBadLimit, Where(tier, limit), plain.error().message);
    }
  }
}

void CompileTierNames(CompiledPolicy& policy, ProblemList& problems) {
  CheckTierNames(policy.spec, problems);
  CheckUnusedTierLimits(policy.spec, problems);
  for (const auto& [name, limits] : policy.spec.tiers) policy.tiers.push_back(name);
  const auto source = policy.spec.identity.find("tier");
  const std::string name = source == policy.spec.identity.end() ? "" : source->second.fallback;
  policy.default_tier_name = name;
  const auto uses_tiers = [](const RuleSpec& rule) { return !rule.tier_limit.empty(); };
  if (policy.tiers.empty() || std::ranges::none_of(policy.spec.rules, uses_tiers)) return;
  const Where top;
  const Where identity(top, "identity");
  const Where tier(identity, "tier");
  const auto found = std::ranges::lower_bound(policy.tiers, name);
  if (found == policy.tiers.end() || *found != name) {
    const std::string instead =
        "write identity: { tier: { default: " + policy.tiers.front() + " } }";
    problems.Add(ProblemCode::kNoDefaultTier, tier,
                 name.empty()
                     ? "rules depend on the tier, but there is no default; " + instead
                     : "the default tier " + Quoted(name) + " is none of tiers; " + instead);
    return;
  }
  policy.default_tier = static_cast<std::uint32_t>(found - policy.tiers.begin());
}

void CheckRuleNames(const PolicySpec& spec, ProblemList& problems) {
  const Where top;
  const Where rules(top, "rules");
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < spec.rules.size(); ++i) {
    const auto [found, is_new] = first.emplace(spec.rules[i].name, i);
    if (is_new || spec.rules[i].name.empty()) continue;
    const Where rule(rules, i);
    problems.Add(ProblemCode::kDuplicateRule, Where(rule, "name"),
                 "the name " + Quoted(spec.rules[i].name) + " belongs to rules[" +
                     std::to_string(found->second) + "] already; take another");
  }
}

void CompileLists(CompiledPolicy& policy, ProblemList& problems,
                  std::vector<CompiledMatch>& matches) {
  const Where top;
  const CompiledMatch always;
  const auto compile = [&](std::string_view key, const std::vector<Match>& list,
                           std::uint32_t& count) {
    const Where list_where(top, key);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Where where = list.size() == 1 ? list_where : Where(list_where, i);
      const std::size_t errors_before = problems.errors();
      CheckMatch(list[i], where, problems);
      if (problems.errors() > errors_before || problems.HasErrorWithin(where)) continue;
      Result<CompiledMatch> match = CompiledMatch::Make(list[i]);
      if (!match) {
        problems.Add(ProblemCode::kMisusedAttribute, where, match.error().message);
        continue;
      }
      if (match->Covers(always)) {
        problems.Add(ProblemCode::kMissing, where,
                     "this is for every request; name some attributes, or remove it");
      }
      if (const std::string why = match->WhyNever(); !why.empty()) {
        problems.Add(ProblemCode::kNeverMatches, where,
                     "no request can match: " + why + "; remove one of the two");
      }
      matches.push_back(*std::move(match));
      ++count;
    }
  };
  compile("allow", policy.spec.allow, policy.allow_count);
  compile("deny", policy.spec.deny, policy.deny_count);
}

void CheckUnconditional(const CompiledPolicy& policy, ProblemList& problems) {
  const auto always = std::ranges::count_if(policy.rules, [&](const CompiledRule& rule) {
    return policy.spec.rules[rule.spec].match.empty();
  });
  if (static_cast<std::size_t>(always) <= kMostUnconditional) return;
  const Where top;
  problems.Add(ProblemCode::kTooManyRules, Where(top, "rules"),
               std::to_string(always) + " rules apply to every request; at most " +
                   std::to_string(kMostUnconditional) + " may, so give some of them a match");
}

void ListStoreFiles(CompiledPolicy& policy) {
  for (const std::string& text : policy.spec.store) {
    const Result<StoreAddress> address = StoreAddress::Parse(text);
    if (!address) continue;  // It is `memory`.
    for (const std::string& file : address->Files()) {
      policy.files.push_back(PathIn(policy.folder, file));
    }
  }
}

}  // namespace

std::string PathIn(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).string();
}

bool HasSharedStore(const PolicySpec& spec) {
  return spec.store != std::vector<std::string>{"memory"};
}

std::string WhyBeyondStore(const Limit& limit, const PolicySpec& spec) {
  if (!HasSharedStore(spec)) return "";
  const Result<Limit> shared = limit.ForSharedStore();
  return shared ? "" : shared.error().message;
}

bool CountsAlike(const Limit& a, const Limit& b) {
  const bool counted = a.kind() == LimitKind::kCounted && b.kind() == LimitKind::kCounted;
  return !counted || a.state_salt() == b.state_salt();
}

std::shared_ptr<const CompiledPolicy> CompilePolicy(PolicySpec spec, const std::string& folder,
                                                    ProblemList& problems) {
  auto policy = std::make_shared<CompiledPolicy>();
  policy->spec = std::move(spec);
  policy->folder = folder;
  CheckTexts(policy->spec, problems);
  CheckService(policy->spec, problems);
  CheckRuleNames(policy->spec, problems);
  policy->hash = HashOf(policy->spec, folder, problems);
  if (const auto identity = Identity::Make(policy->spec); !identity && !problems.has_errors()) {
    problems.Add(ProblemCode::kBadIdentity, Where(), identity.error().message);
  }
  CompileTierNames(*policy, problems);
  std::vector<CompiledMatch> matches;
  CompileLists(*policy, problems, matches);
  const Where top;
  const Where rules(top, "rules");
  RuleCompiler compiler(*policy, folder, problems);
  for (std::uint32_t i = 0; i < policy->spec.rules.size(); ++i) {
    compiler.Compile(i, Where(rules, i), matches);
  }
  CheckUnconditional(*policy, problems);
  if (problems.has_errors()) return nullptr;
  ListStoreFiles(*policy);
  policy->matcher.emplace(std::move(matches));
  Advise(*policy, problems);
  return policy;
}

}  // namespace weir
