// Advice: policies that load, but that experience says will not do what was meant.
#include <algorithm>
#include <array>
#include <set>

#include "limit/limit_check.h"
#include "limit/limit_words.h"
#include "policy/path.h"
#include "policy/policy_compiler.h"

namespace weir {
namespace {

constexpr std::int64_t kLongLog = 1'000;  // Entries.
constexpr std::int64_t kBytesPerEntry = 12;

// What a client can change with every request.
bool IsChosenByClient(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kPath:
    case AttributeKind::kHost:
    case AttributeKind::kPathSegment:
    case AttributeKind::kHeader:
    case AttributeKind::kCookie:
    case AttributeKind::kQuery:
    case AttributeKind::kFingerprint:
      return true;
    default:
      return false;
  }
}

// Rules that count by something the client cannot choose. Of very many, some will do.
std::vector<std::uint32_t> FindGuards(const CompiledPolicy& policy) {
  constexpr std::size_t kMost = 64;
  const auto chosen = [](const std::vector<KeyPlan::Source>& alternatives) {
    return std::ranges::any_of(alternatives, [](const KeyPlan::Source& source) {
      return IsChosenByClient(source.attribute);
    });
  };
  std::vector<std::uint32_t> guards;
  for (std::uint32_t i = 0; i < policy.rules.size() && guards.size() < kMost; ++i) {
    const CompiledRule& rule = policy.rules[i];
    if (rule.enforced && std::ranges::none_of(policy.keys[rule.key].parts(), chosen)) {
      guards.push_back(i);
    }
  }
  return guards;
}

class RuleAdviser {
 public:
  RuleAdviser(const CompiledPolicy& policy, std::uint32_t number,
              std::span<const std::uint32_t> guards, ProblemList& problems)
      : policy_(policy),
        guards_(guards),
        rule_(policy.rules[number]),
        spec_(policy.spec.rules[rule_.spec]),
        match_(policy.MatchOf(number)),
        plan_(policy.keys[rule_.key]),
        where_(rules_, std::size_t{rule_.spec}),
        problems_(problems) {}

  void Advise() {
    AdviseOnBoundary();
    AdviseOnAddress();
    AdviseOnLog();
    AdviseOnCost();
    AdviseOnKey();
    AdviseOnIdleSettings();
  }

 private:
  void Say(ProblemCode code, std::string_view key, std::string message) {
    problems_.Add(code, Where(where_, key), std::move(message));
  }

  const Limit& limit() const { return rule_.limits.front(); }

  // Paths on which people guess passwords, codes and accounts.
  static bool IsSensitive(std::string_view pattern) {
    constexpr std::array<std::string_view, 14> kWords = {
        "login", "signin", "sign-in", "auth", "password", "passwd", "reset",
        "token", "otp",    "2fa",     "mfa",  "register", "signup", "verify"};
    return std::ranges::any_of(kWords, [&](std::string_view word) {
      return std::ranges::search(pattern, word, {}, ToLower).size() == word.size();
    });
  }

  void AdviseOnBoundary() {
    if (limit().kind() != LimitKind::kCounted || limit().algorithm() != Algorithm::kFixedWindow) {
      return;
    }
    for (const AttributeTest& test : spec_.match.attributes) {
      if (test.attribute != "path" || test.negated) continue;
      const auto sensitive = std::ranges::find_if(test.any_of, IsSensitive);
      if (sensitive == test.any_of.end()) continue;
      const std::int64_t count = limit().capacity();
      Say(ProblemCode::kBoundaryBurst, "algorithm",
          "a fixed window on " + *sensitive + " lets " + std::to_string(2 * count) +
              " through around a boundary, not " + std::to_string(count) +
              "; use sliding_log, or sliding_window with strict: true");
      return;
    }
  }

  bool KeyHasOnly(AttributeKind kind) const {
    return plan_.parts().size() == 1 && plan_.parts().front().size() == 1 &&
           plan_.parts().front().front().attribute.kind == kind;
  }

  void AdviseOnAddress() {
    if (!KeyHasOnly(AttributeKind::kIp)) return;
    for (const AttributeKind kind :
         {AttributeKind::kUser, AttributeKind::kApiKey, AttributeKind::kOrg}) {
      const Attribute attribute{kind};
      if (!match_.Guarantees(attribute)) continue;
      Say(ProblemCode::kSharedAddress, "key",
          "requests that have " + ToString(attribute) +
              " are counted by address, so an office or a mobile network counts as one; use key: " +
              ToString(attribute));
      return;
    }
  }

  void AdviseOnLog() {
    for (const Limit& limit : rule_.limits) {
      const bool is_log =
          limit.kind() == LimitKind::kCounted && limit.algorithm() == Algorithm::kSlidingLog;
      if (!is_log || limit.capacity() < kLongLog) continue;
      Say(ProblemCode::kLargeLog, "limit",
          "a log of " + std::to_string(limit.capacity()) + " takes about " +
              std::to_string(limit.capacity() * kBytesPerEntry / 1000) +
              " kB for every key that is used to the full; use sliding_window, with strict: true "
              "if "
              "it must be exact");
      return;
    }
  }

  void AdviseOnCost() {
    if (!rule_.cost || rule_.cost->attribute.empty() || !rule_.cost->from_anyone) return;
    Say(ProblemCode::kChosenCost, "cost",
        "every client can state a cost of " + std::to_string(rule_.cost->min) +
            "; write from: trusted, or a min that is the least a request can cost");
  }

  // Whether the request has the attribute whatever the client does.
  static bool IsAlwaysThere(const Attribute& attribute) {
    switch (attribute.kind) {
      case AttributeKind::kIp:
      case AttributeKind::kFingerprint:
      case AttributeKind::kMethod:
      case AttributeKind::kPath:
      case AttributeKind::kHost:
      case AttributeKind::kPathSegment:
        return true;
      default:
        return false;
    }
  }
  bool IsThere(const Attribute& attribute) const {
    if (IsAlwaysThere(attribute) || match_.Guarantees(attribute)) return true;
    const auto source = policy_.spec.identity.find(ToString(attribute));
    return source != policy_.spec.identity.end() && !source->second.fallback.empty();
  }

  // A match on certain values leaves the client only these.
  bool IsBounded(const Attribute& attribute) const {
    if (!IsChosenByClient(attribute)) return true;
    return std::ranges::any_of(spec_.match.attributes, [&](const AttributeTest& test) {
      const auto is_literal = [](const std::string& text) {
        return text.find_first_of("*{") == std::string::npos;
      };
      return test.attribute == ToString(attribute) && !test.negated &&
             test.wants == AttributeTest::Wants::kValue &&
             std::ranges::all_of(test.any_of, is_literal);
    });
  }
  void AdviseOnKey() {
    for (const auto& alternatives : plan_.parts()) {
      for (const KeyPlan::Source& source : alternatives) AdviseOnSource(source.attribute);
      const auto there = [&](const KeyPlan::Source& source) { return IsThere(source.attribute); };
      if (rule_.unidentified != Unidentified::kShare) continue;
      if (std::ranges::any_of(alternatives, there)) continue;
      const std::string name = ToString(alternatives.back().attribute);
      Say(ProblemCode::kUnguaranteedKey, "key",
          "requests without " + name + " match too and share one count; write match: { " + name +
              ": present }, first_of, or unidentified: skip");
    }
  }

  void AdviseOnSource(const Attribute& attribute) {
    if (!IsBounded(attribute) && !IsGuarded()) {
      Say(ProblemCode::kUnboundedKey, "key",
          "a client can change " + ToString(attribute) +
              " with every request and be counted anew each time; add a rule by ip or user without "
              "it, or match on certain values");
    }
    const bool secret = attribute.kind == AttributeKind::kApiKey ||
                        (attribute.kind == AttributeKind::kHeader &&
                         (attribute.name == "authorization" || attribute.name == "x-api-key" ||
                          attribute.name == "cookie")) ||
                        attribute.kind == AttributeKind::kCookie;
    if (secret && !IsHashed(attribute)) {
      Say(ProblemCode::kClearToken, "key",
          ToString(attribute) + " is stored in clear as part of keys; write { " +
              ToString(attribute) + ": { hash: true } }");
    }
  }

  // Another enforced rule, by something the client cannot choose, sees at least the same requests.
  bool IsGuarded() const {
    return std::ranges::any_of(guards_, [&](std::uint32_t number) {
      return &policy_.rules[number] != &rule_ && policy_.MatchOf(number).Covers(match_);
    });
  }

  bool IsHashed(const Attribute& attribute) const {
    for (const auto& alternatives : plan_.parts()) {
      for (const KeyPlan::Source& source : alternatives) {
        if (source.attribute == attribute && source.hash) return true;
      }
    }
    return false;
  }

  void AdviseOnIdleSettings() {
    if (spec_.mode == RuleMode::kShadow && spec_.block) {
      Say(ProblemCode::kIdleSetting, "block",
          "a rule in shadow mode bans nobody; remove block, or the mode");
    }
    if (spec_.mode == RuleMode::kShadow && spec_.enforce_percent != 100) {
      Say(ProblemCode::kIdleSetting, "enforce_percent",
          "a rule in shadow mode is enforced for nobody; remove one of the two");
    }
    const bool calendar = spec_.align == Align::kCalendar;
    if (!calendar && (spec_.zone != RuleSpec().zone || spec_.week_start != RuleSpec().week_start)) {
      Say(ProblemCode::kIdleSetting, spec_.zone != RuleSpec().zone ? "zone" : "week_start",
          "only windows that follow the calendar have a zone; write align: calendar");
    }
  }

  const CompiledPolicy& policy_;
  const std::span<const std::uint32_t> guards_;
  const CompiledRule& rule_;
  const RuleSpec& spec_;
  const CompiledMatch& match_;
  const KeyPlan& plan_;
  const Where top_;
  const Where rules_{top_, "rules"};
  const Where where_;
  ProblemList& problems_;
};

// --- A rule covered by a tighter one ---

// At most the same rate and the same burst.
bool IsTighter(const Limit& a, const Limit& b) {
  if (a.kind() != LimitKind::kCounted || b.kind() != LimitKind::kCounted) return false;
  if (a.state_salt() != b.state_salt()) return false;
  if (!IsBucket(a.algorithm())) return a.capacity() <= b.capacity();
  return a.emission_interval() >= b.emission_interval() && a.capacity() <= b.capacity();
}

bool IsPlainRule(const CompiledRule& rule) {
  return rule.limits.size() == 1 && rule.overrides == nullptr && !rule.share_hash && !rule.cost;
}

void AdviseOnCovered(const CompiledPolicy& policy, ProblemList& problems) {
  constexpr std::size_t kMostCompared = 2'000;
  if (policy.rules.size() > kMostCompared) return;
  const Where top;
  const Where rules(top, "rules");
  for (std::uint32_t i = 0; i < policy.rules.size(); ++i) {
    const CompiledRule& wide = policy.rules[i];
    if (!IsPlainRule(wide)) continue;
    for (std::uint32_t j = 0; j < policy.rules.size(); ++j) {
      const CompiledRule& tight = policy.rules[j];
      if (i == j || tight.key != wide.key || !tight.enforced || !IsPlainRule(tight)) continue;
      if (!IsTighter(tight.limits.front(), wide.limits.front())) continue;
      // Of two that are the same, the later one is superfluous.
      const bool same = IsTighter(wide.limits.front(), tight.limits.front()) &&
                        policy.MatchOf(i).Covers(policy.MatchOf(j));
      if (same && wide.enforced && j > i) continue;
      if (!policy.MatchOf(j).Covers(policy.MatchOf(i))) continue;
      problems.Add(
          ProblemCode::kCovered, Where(rules, std::size_t{wide.spec}),
          "the rule " + Quoted(wide.name) + " never decides: " + Quoted(tight.name) +
              " applies to the same requests and keys and is at least as tight; remove it");
      break;
    }
  }
}

void AdviseOnTiers(const PolicySpec& spec, ProblemList& problems) {
  std::set<std::string_view> used;
  for (const RuleSpec& rule : spec.rules) used.insert(rule.tier_limit);
  std::set<std::string_view> said;
  const Where top;
  const Where tiers(top, "tiers");
  for (const auto& [name, limits] : spec.tiers) {
    const Where tier(tiers, name);
    for (const auto& [limit, text] : limits) {
      if (used.contains(limit) || !said.insert(limit).second) continue;
      problems.Add(ProblemCode::kUnusedTier, Where(tier, limit),
                   "no rule uses " + Quoted(limit) + "; write limit: { tier: " + limit +
                       " } in a rule, or remove it",
                   Where::Point::kKey);
    }
  }
}

void AdviseOnIdentity(const PolicySpec& spec, ProblemList& problems) {
  const Where top;
  const Where identity(top, "identity");
  for (const auto& [attribute, source] : spec.identity) {
    if (!source.from_anyone || attribute == "api_key") continue;
    problems.Add(ProblemCode::kForgeableIdentity, Where(identity, attribute),
                 "every client can name its own " + attribute +
                     "; leave out from: anyone, so that only trusted_proxies are believed");
  }
}

}  // namespace

void Advise(const CompiledPolicy& policy, ProblemList& problems) {
  const Where top;
  if (policy.spec.rules.empty()) {
    problems.Add(ProblemCode::kNoRules, Where(top, "rules"),
                 "there are no rules: nothing is limited");
  }
  const std::vector<std::uint32_t> guards = FindGuards(policy);
  for (std::uint32_t i = 0; i < policy.rules.size(); ++i) {
    RuleAdviser(policy, i, guards, problems).Advise();
  }
  AdviseOnCovered(policy, problems);
  AdviseOnTiers(policy.spec, problems);
  AdviseOnIdentity(policy.spec, problems);
}

}  // namespace weir
