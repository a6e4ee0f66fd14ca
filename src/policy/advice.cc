// Advice: policies that load, but that experience says will not do what was meant.
#include <algorithm>
#include <array>
#include <set>

#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/attribute.h"
#include "policy/compiled_policy.h"
#include "policy/key_plan.h"
#include "policy/policy_compiler.h"

namespace weir {
namespace {

constexpr std::int64_t kLongLog = 1'000;  // Entries.
// In memory, entries come in chunks of seven that take 128 bytes.
constexpr std::int64_t kEntriesPerChunk = 7;
constexpr std::int64_t kBytesPerChunk = 128;

// What a client can change with every request.
bool IsChosenByClient(const Attribute& attribute, const PolicySpec& spec) {
  const auto identity = spec.identity.find(ToString(attribute));
  if (identity != spec.identity.end() && identity->second.from_anyone) return true;
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

// Whether people guess passwords, codes or accounts there: /auth/login, /reset-password, /SignIn,
// but not /authors.
bool IsSensitivePath(std::string_view pattern) {
  constexpr std::array<std::string_view, 20> kWords = {
      "login",    "logon",     "signin",   "auth",   "oauth",  "oauth2",      "authenticate",
      "password", "passwords", "passwd",   "reset",  "token",  "otp",         "totp",
      "2fa",      "mfa",       "register", "signup", "verify", "verification"};
  const auto is_one = [&](const std::string& word) {
    return std::ranges::find(kWords, word) != kWords.end();
  };
  std::string word;     // Up to anything that is no letter or digit,
  std::string segment;  // and all words between two slashes: sign-in is signin.
  for (const char c : std::string(pattern) + "/") {
    const char lower = ToLower(c);
    if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9')) {
      word += lower;
      segment += lower;
      continue;
    }
    if (is_one(word)) return true;
    word.clear();
    if (c != '/') continue;
    if (is_one(segment)) return true;
    segment.clear();
  }
  return false;
}

// Rules that count by something the client cannot choose. Of very many, some will do.
std::vector<std::uint32_t> FindGuards(const CompiledPolicy& policy) {
  constexpr std::size_t kMost = 64;
  const auto chosen = [&](const std::vector<KeyPlan::Source>& alternatives) {
    return std::ranges::any_of(alternatives, [&](const KeyPlan::Source& source) {
      return IsChosenByClient(source.attribute, policy.spec);
    });
  };
  std::vector<std::uint32_t> guards;
  for (std::uint32_t i = 0; i < policy.rules.size() && guards.size() < kMost; ++i) {
    const CompiledRule& rule = policy.rules[i];
    const bool counts = rule.limits.front().kind() != LimitKind::kUnlimited;
    if (rule.enforced && !rule.share_hash && counts &&
        std::ranges::none_of(policy.keys[rule.key].parts(), chosen)) {
      guards.push_back(i);
    }
  }
  return guards;
}

std::string MatchOnPresence(const std::string& attribute) {
  return "match: { " + attribute + ": present }";
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

  // Of the match and of those in it, unless they are excluded.
  static const std::string* FindSensitivePath(const Match& match) {
    for (const AttributeTest& test : match.attributes) {
      if (test.attribute != "path" || test.negated) continue;
      const auto found = std::ranges::find_if(test.any_of, IsSensitivePath);
      if (found != test.any_of.end()) return &*found;
    }
    for (const std::vector<Match>* parts : {&match.all, &match.any}) {
      for (const Match& part : *parts) {
        if (const std::string* found = FindSensitivePath(part)) return found;
      }
    }
    return nullptr;
  }

  void AdviseOnBoundary() {
    if (limit().kind() != LimitKind::kCounted || limit().algorithm() != Algorithm::kFixedWindow) {
      return;
    }
    const std::string* sensitive = FindSensitivePath(spec_.match);
    if (sensitive == nullptr) return;
    const std::int64_t count = limit().capacity();
    Say(ProblemCode::kBoundaryBurst, "algorithm",
        "a fixed window on " + *sensitive + " lets " + std::to_string(2 * count) +
            " through around a boundary, not " + std::to_string(count) +
            "; use sliding_log, or sliding_window with strict: true");
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
      const std::int64_t chunks = (limit.capacity() + kEntriesPerChunk - 1) / kEntriesPerChunk;
      Say(ProblemCode::kLargeLog, "limit",
          "a log of " + std::to_string(limit.capacity()) + " takes about " +
              std::to_string((chunks * kBytesPerChunk + 500) / 1000) +
              " kB for every key that is used to the full; use sliding_window, with strict: true "
              "if "
              "it must be exact");
      return;
    }
  }

  void AdviseOnCost() {
    if (!rule_.cost || rule_.cost->attribute.empty() || !rule_.cost->from_anyone) return;
    // Whoever wrote a higher one has thought of those who always state the least.
    const bool thought_of = rule_.cost->min > CostSpec().min || rule_.cost->min == rule_.cost->max;
    if (thought_of) return;
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
  static bool IsBoundedBy(const CompiledMatch& match, const Attribute& attribute) {
    const auto bounds = [&](const Condition& condition) {
      return condition.attribute() == attribute && condition.asks() == Condition::Asks::kOneOf &&
             condition.globs().empty() && condition.patterns().empty();
    };
    return std::ranges::any_of(match.conditions(), bounds) ||
           std::ranges::any_of(match.all(), [&](const CompiledMatch& part) {
             return IsBoundedBy(part, attribute);
           });
  }
  bool IsBounded(const Attribute& attribute) const {
    return !IsChosenByClient(attribute, policy_.spec) || IsBoundedBy(match_, attribute);
  }

  void AdviseOnKey() {
    for (const auto& alternatives : plan_.parts()) {
      for (const KeyPlan::Source& source : alternatives) AdviseOnSource(source.attribute);
      const auto there = [&](const KeyPlan::Source& source) { return IsThere(source.attribute); };
      if (rule_.unidentified != Unidentified::kShare) continue;
      if (std::ranges::any_of(alternatives, there)) continue;
      const std::string name = ToString(alternatives.front().attribute);
      if (alternatives.size() > 1) {
        Say(ProblemCode::kUnguaranteedKey, "key",
            "requests that have nothing of first_of match too and share one count; add ip at its "
            "end, or write unidentified: skip");
      } else if (alternatives.front().attribute.kind == AttributeKind::kPathSegment) {
        Say(ProblemCode::kUnguaranteedKey, "key",
            "paths without " + name +
                " match too and share one count; write another rule for them, or unidentified: "
                "skip");
      } else {
        Say(ProblemCode::kUnguaranteedKey, "key",
            "requests without " + name + " match too and share one count; write " +
                MatchOnPresence(name) + ", first_of, or unidentified: skip");
      }
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
              ToString(attribute) + ": { hash: true } } in its place");
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
          "only windows that follow the calendar have it; write align: calendar, or remove it");
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

// A name may stand for anything, but for the one that every machine gives itself.
bool IsLoopback(std::string_view host) {
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const std::optional<IpAddress> address = IpAddress::Parse(host);
  if (!address) return host == "localhost";
  return address->is_v4() ? address->bytes()[0] == 127 : address == IpAddress::Parse("::1");
}

// Who connects is taken for the last of the proxies that are counted. Only requests of forward-auth
// are looked at that way, and those come over HTTP.
void AdviseOnHops(const PolicySpec& spec, ProblemList& problems) {
  const auto http = spec.listen.find("http");
  if (spec.client_ip.hops == 0 || http == spec.listen.end()) return;
  const ListenerSpec& listener = http->second;
  const std::string_view address = listener.address;
  const bool is_local =
      address.starts_with("unix:") || IsLoopback(address.substr(0, address.rfind(':')));
  if (is_local || !listener.token.empty() || !listener.tls_client_ca.empty()) return;
  const Where top;
  problems.Add(ProblemCode::kTrustsEveryone, Where(Where(top, "client_ip"), "hops"),
               "everybody who reaches " + listener.address +
                   " counts as your last proxy, and may say who the client is; write a token or "
                   "client_ca for listen: http, or name your proxies in trusted_proxies");
}

}  // namespace

void Advise(const CompiledPolicy& policy, ProblemList& problems) {
  const Where top;
  if (!policy.spec.memory.snapshot.empty() && HasSharedStore(policy.spec)) {
    problems.Add(ProblemCode::kIdleSetting, Where(Where(top, "memory"), "snapshot"),
                 "the store keeps the state, and there is none here to be saved; remove it, or "
                 "write store: memory");
  }
  if (policy.rules.empty()) {
    problems.Add(ProblemCode::kNoRules, Where(top, "rules"),
                 policy.spec.rules.empty()
                     ? "there are no rules: nothing is limited; write some under rules"
                     : "all rules are off: nothing is limited; remove mode: off from some");
  }
  const std::vector<std::uint32_t> guards = FindGuards(policy);
  for (std::uint32_t i = 0; i < policy.rules.size(); ++i) {
    RuleAdviser(policy, i, guards, problems).Advise();
  }
  AdviseOnCovered(policy, problems);
  AdviseOnTiers(policy.spec, problems);
  AdviseOnIdentity(policy.spec, problems);
  AdviseOnHops(policy.spec, problems);
}

}  // namespace weir
