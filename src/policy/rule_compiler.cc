#include "policy/rule_compiler.h"

#include <algorithm>
#include <utility>

#include "base/mix.h"
#include "limit/limit_words.h"
#include "policy/policy_ranges.h"
#include "policy/policy_words.h"

namespace weir {
namespace {

constexpr std::size_t kMaxRuleNameBytes = 64;
constexpr std::size_t kMaxMessageBytes = 512;
constexpr std::int64_t kMaxDenials = 10'000;
constexpr std::size_t kMaxBanLengths = 64;

bool IsRuleNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// The same for everybody, unlike the store's hash.
std::uint64_t SeedFrom(std::string_view name) {
  std::uint64_t seed = 0;
  for (const char c : name) seed = Mix(seed ^ static_cast<unsigned char>(c));
  return seed | 1;  // 0 may stand for a random one.
}

// One unit that takes `length` to come back.
Result<Limit> Lasting(Duration length, std::int64_t burst) {
  return Limit::Make({.count = 1, .period = length, .burst = burst, .max_wait = Duration(0)});
}

}  // namespace

LimitSpec LimitDefaults(const RuleSpec& rule, const PolicySpec& spec) {
  return {.algorithm = rule.algorithm,
          .queue = rule.queue,
          .overdraft = rule.overdraft,
          .strict = rule.strict,
          .sub_windows = rule.sub_windows,
          .align = rule.align,
          .zone = rule.zone,
          .week_start = rule.week_start,
          .max_wait = spec.max_wait};
}

const Limit* FirstCounted(const CompiledRule& rule) {
  const auto found = std::ranges::find(rule.limits, LimitKind::kCounted, &Limit::kind);
  return found == rule.limits.end() ? nullptr : &*found;
}

void RuleCompiler::Compile(std::uint32_t number, const Where& where,
                           std::vector<CompiledMatch>& matches) {
  if (problems_.HasErrorAt(where)) return;  // Something else stands where a rule should.
  const RuleSpec& spec = policy_.spec.rules[number];
  CheckSettings(spec, where);
  std::optional<CompiledMatch> match = CompileMatch(spec.match, Where(where, "match"));
  CompiledRule rule{.name = spec.name, .message = spec.message, .spec = number};
  rule.enforced = spec.mode == RuleMode::kEnforce;
  rule.unidentified = spec.unidentified.value_or(policy_.spec.unidentified);
  rule.on_store_failure = spec.on_store_failure.value_or(policy_.spec.on_store_failure);
  if (spec.enforce_percent != kPercentRange.most) {
    rule.share_hash.emplace(HashKind::kXxh3, SeedFrom(spec.name));
    rule.share = spec.enforce_percent / kPercentRange.most;
  }
  const bool has_key = CompileKey(spec, match ? &*match : nullptr, where, rule);
  const bool has_limits = CompileLimits(spec, where, rule);
  CompileCost(spec, where, rule);
  if (spec.block) CompileBlock(*spec.block, Where(where, "block"), rule);
  if (!match || !has_key || !has_limits) return;
  CompileOverrides(spec, *match, where, folder_, policy_, rule, problems_);
  if (spec.mode == RuleMode::kOff) return;
  policy_.rules.push_back(std::move(rule));
  matches.push_back(*std::move(match));
}

std::optional<CompiledMatch> RuleCompiler::CompileMatch(const Match& match, const Where& where) {
  const std::size_t errors_before = problems_.errors();
  CheckMatch(match, where, problems_);
  if (problems_.errors() > errors_before) return std::nullopt;
  Result<CompiledMatch> compiled = CompiledMatch::Make(match);
  if (!compiled) {
    if (!problems_.HasErrorWithin(where)) {
      problems_.Add(ProblemCode::kMisusedAttribute, where, compiled.error().message);
    }
    return std::nullopt;
  }
  if (const std::string why = compiled->WhyNever(); !why.empty()) {
    problems_.Add(ProblemCode::kNeverMatches, where,
                  "no request can match: " + why + "; remove one of the two");
  }
  return *std::move(compiled);
}

void RuleCompiler::CheckSettings(const RuleSpec& spec, const Where& where) {
  const Where name(where, "name");
  if (spec.name.empty()) {
    if (!problems_.HasErrorWithin(name)) {
      problems_.Add(ProblemCode::kMissing, name, "the rule has no name; write name: ...");
    }
  } else if (spec.name.size() > kMaxRuleNameBytes ||
             !std::ranges::all_of(spec.name, IsRuleNameCharacter)) {
    problems_.Add(ProblemCode::kBadName, name,
                  "the name " + Quoted(spec.name) +
                      " is not allowed; write 1 to 64 letters, digits, '.', '_' or '-'");
  }
  const auto is_plain = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; };
  if (spec.message.size() > kMaxMessageBytes || !std::ranges::all_of(spec.message, is_plain)) {
    problems_.Add(ProblemCode::kBadMessage, Where(where, "message"),
                  "the message is too long or holds line breaks; write up to 512 bytes on one "
                  "line");
  }
  if (!kPercentRange.Has(spec.enforce_percent)) {
    problems_.Add(ProblemCode::kBadPercent, Where(where, "enforce_percent"),
                  "the share is out of range; write 0 to 100");
  }
  if (!spec.week_start.ok()) {
    problems_.Add(ProblemCode::kOutOfRange, Where(where, "week_start"),
                  "there is no such day; take std::chrono::Monday to Sunday");
  }
}

bool RuleCompiler::CompileKey(const RuleSpec& spec, const CompiledMatch* match, const Where& where,
                              CompiledRule& rule) {
  const Where key_where(where, "key");
  std::vector<std::vector<KeyPlan::Source>> parts;
  bool good = true;
  for (std::size_t i = 0; i < spec.key.size(); ++i) {
    const Where part_where = spec.key.size() == 1 ? key_where : Where(key_where, i);
    const Where first_of_where(part_where, "first_of");
    const std::vector<KeyAttribute>& first_of = spec.key[i].first_of;
    std::vector<KeyPlan::Source> alternatives;
    for (std::size_t j = 0; j < first_of.size(); ++j) {
      const Where source_where = first_of.size() == 1 ? part_where : Where(first_of_where, j);
      good = CompileSource(first_of[j], match, source_where, alternatives.emplace_back()) && good;
    }
    if (alternatives.empty()) {
      problems_.Add(ProblemCode::kMissing, part_where, "first_of is empty; name some attributes");
      good = false;
    }
    parts.push_back(std::move(alternatives));
  }
  if (!good) return false;
  rule.key = KeyNumber(KeyPlan(std::move(parts)));
  return true;
}

bool RuleCompiler::CompileSource(const KeyAttribute& attribute, const CompiledMatch* match,
                                 const Where& where, KeyPlan::Source& source) {
  Result<Attribute> parsed = ParseAttribute(attribute.name);
  if (!parsed) {
    problems_.Add(ProblemCode::kUnknownAttribute, where,
                  parsed.error().message + "; key: global counts all requests together");
    return false;
  }
  if (parsed->kind == AttributeKind::kPathSegment && match != nullptr &&
      !match->HasPathName(parsed->name)) {
    problems_.Add(ProblemCode::kMisusedAttribute, where,
                  "no path pattern of the match has {" + parsed->name + "}; write it there");
    return false;
  }
  const bool by_address =
      parsed->kind == AttributeKind::kIp || parsed->kind == AttributeKind::kFingerprint;
  if (!by_address && (attribute.ipv4_prefix != 0 || attribute.ipv6_prefix != 0)) {
    problems_.Add(ProblemCode::kMisusedAttribute, where,
                  "v4 and v6 are for ip and fingerprint; remove them from " + attribute.name);
  }
  const auto allowed = [](int prefix, const Range<int>& range) {
    return prefix == 0 || range.Has(prefix);
  };
  if (!allowed(attribute.ipv4_prefix, kIpv4PrefixRange) ||
      !allowed(attribute.ipv6_prefix, kIpv6PrefixRange)) {
    problems_.Add(ProblemCode::kOutOfRange, where,
                  "a prefix is out of range; write 1 to 32 bits for v4, 1 to 128 for v6");
    return false;
  }
  const auto identity = policy_.spec.identity.find(attribute.name);
  const bool hashed_at_source = identity != policy_.spec.identity.end() && identity->second.hash;
  source.hash = attribute.hash || hashed_at_source;
  source.ipv4_prefix = attribute.ipv4_prefix == 0 ? 32 : attribute.ipv4_prefix;
  source.ipv6_prefix =
      attribute.ipv6_prefix == 0 ? policy_.spec.client_ip.ipv6_prefix : attribute.ipv6_prefix;
  source.attribute = *std::move(parsed);
  source.encoded_name = EncodeForSubject(ToString(source.attribute));
  return true;
}

std::uint32_t RuleCompiler::KeyNumber(KeyPlan plan) {
  const auto next = static_cast<std::uint32_t>(policy_.keys.size());
  if (!plan.DependsOnMatch()) {
    std::string names;
    for (const auto& alternatives : plan.parts()) {
      for (const KeyPlan::Source& source : alternatives) names += source.encoded_name + "|";
      names += "&";
    }
    const auto [first, last] = plans_.equal_range(names);
    for (auto at = first; at != last; ++at) {
      if (policy_.keys[at->second] == plan) return at->second;
    }
    plans_.emplace(std::move(names), next);
  }
  policy_.keys.push_back(std::move(plan));
  return next;
}

bool RuleCompiler::CompileLimits(const RuleSpec& spec, const Where& where, CompiledRule& rule) {
  const Where limit_where(where, "limit");
  if (spec.limit.empty() && spec.tier_limit.empty()) {
    if (!problems_.HasErrorWithin(limit_where)) {
      problems_.Add(ProblemCode::kMissing, limit_where,
                    "the rule has no limit; write limit: 100/min, or limit: { tier: NAME }");
    }
    return false;
  }
  if (!spec.limit.empty() && !spec.tier_limit.empty()) {
    problems_.Add(ProblemCode::kTwoLimits, limit_where,
                  "the rule has a limit and that of a tier; keep one of the two");
    return false;
  }
  if (!spec.tier_limit.empty()) return CompileTiers(spec, where, rule);
  Result<Limit> limit = Limit::Parse(spec.limit, LimitDefaults(spec, policy_.spec));
  if (!limit) {
    problems_.Add(ProblemCode::kBadLimit, limit_where, limit.error().message);
    return false;
  }
  if (const std::string why = WhyBeyondStore(*limit, policy_.spec); !why.empty()) {
    problems_.Add(ProblemCode::kBeyondStore, limit_where, why);
    return false;
  }
  rule.limits.push_back(*std::move(limit));
  return true;
}

bool RuleCompiler::CompileTiers(const RuleSpec& spec, const Where& where, CompiledRule& rule) {
  const Where limit_where(where, "limit");
  if (policy_.tiers.empty()) {
    problems_.Add(ProblemCode::kNoSuchTierLimit, limit_where,
                  "there are no tiers; write tiers: { NAME: { " + spec.tier_limit + ": ... } }");
    return false;
  }
  // The default tier's comes first: it stands for the rule.
  std::vector<std::optional<Limit>> by_tier;
  const Where top;
  const Where tiers_where(top, "tiers");
  bool good = true;
  for (const std::string& tier : policy_.tiers) {
    const Where tier_where(tiers_where, tier);
    const Where tier_limit_where(tier_where, spec.tier_limit);
    const TierSpec& limits = policy_.spec.tiers.at(tier);
    const auto found = limits.find(spec.tier_limit);
    if (found == limits.end()) {
      problems_.Add(ProblemCode::kNoSuchTierLimit, limit_where,
                    "the tier " + Quoted(tier) + " has no limit called " + Quoted(spec.tier_limit) +
                        "; write it there, or take another name");
      good = false;
      continue;
    }
    Result<Limit> limit = Limit::Parse(found->second, LimitDefaults(spec, policy_.spec));
    if (!limit) {
      problems_.Add(ProblemCode::kBadLimit, tier_limit_where,
                    "for the rule " + Quoted(spec.name) + ": " + limit.error().message);
      good = false;
      continue;
    }
    if (const std::string why = WhyBeyondStore(*limit, policy_.spec); !why.empty()) {
      problems_.Add(ProblemCode::kBeyondStore, tier_limit_where,
                    "for the rule " + Quoted(spec.name) + ": " + why);
      good = false;
      continue;
    }
    by_tier.emplace_back(*std::move(limit));
  }
  if (!good) return false;
  rule.limits.push_back(*by_tier[policy_.default_tier]);
  for (std::size_t i = 0; i < by_tier.size(); ++i) {
    const Limit& limit = *by_tier[i];
    if (i == policy_.default_tier) {
      rule.tiers.push_back(0);
      continue;
    }
    const Limit* const counted = FirstCounted(rule);
    if (counted != nullptr && !CountsAlike(*counted, limit)) {
      const Where tier_where(tiers_where, policy_.tiers[i]);
      problems_.Add(ProblemCode::kAnotherKindOfLimit, Where(tier_where, spec.tier_limit),
                    Quoted(limit.ToString()) + " counts in another way than " +
                        Quoted(counted->ToString()) + " of another tier, for the rule " +
                        Quoted(spec.name) +
                        "; change only count and burst, and the period of a bucket");
      good = false;
    }
    rule.tiers.push_back(static_cast<std::uint32_t>(rule.limits.size()));
    rule.limits.push_back(limit);
  }
  return good;
}

void RuleCompiler::CompileCost(const RuleSpec& spec, const Where& where, CompiledRule& rule) {
  if (!spec.cost) return;
  const CostSpec& cost = *spec.cost;
  const Where cost_where(where, "cost");
  const CostSpec fixed{.fallback = cost.fallback};
  if (problems_.HasErrorWithin(cost_where)) return;
  if (!kCostRange.Has(cost.fallback) || !kCostRange.Has(cost.min) || !kCostRange.Has(cost.max) ||
      cost.min > cost.max) {
    problems_.Add(ProblemCode::kBadCost, cost_where,
                  "write 0 to " + std::to_string(kMaxCount) +
                      " for min, max and default, and min at most max");
  } else if (cost.attribute.empty() && cost != fixed) {
    problems_.Add(ProblemCode::kBadCost, cost_where,
                  "from, min and max are for a cost that the request states; write where it "
                  "stands, as in header: x-cost, or only the number");
  } else if (!cost.attribute.empty() && (cost.fallback < cost.min || cost.fallback > cost.max)) {
    problems_.Add(ProblemCode::kBadCost, cost_where,
                  "default " + std::to_string(cost.fallback) +
                      " is not between min and max; write one that is");
  }
  if (!cost.attribute.empty()) {
    Result<Attribute> attribute = ParseAttribute(cost.attribute);
    const bool holds_text =
        attribute &&
        (attribute->kind == AttributeKind::kHeader || attribute->kind == AttributeKind::kCookie ||
         attribute->kind == AttributeKind::kQuery || attribute->kind == AttributeKind::kDescriptor);
    if (!holds_text) {
      problems_.Add(ProblemCode::kBadCost, cost_where,
                    "a cost cannot come from " + Quoted(cost.attribute) +
                        "; name a header, a cookie, a query or a descriptor");
      return;
    }
    rule.cost_attribute = *std::move(attribute);
  }
  rule.cost = cost;
}

void RuleCompiler::CompileBlock(const BlockSpec& spec, const Where& where, CompiledRule& rule) {
  const auto bad = [&](const std::string& message) {
    problems_.Add(ProblemCode::kBadBlock, where, message);
  };
  if (problems_.HasErrorWithin(where)) return;
  if (spec.denials < 1 || spec.denials > kMaxDenials || spec.within < kMinWindow) {
    return bad("after: write 1 to " + std::to_string(kMaxDenials) +
               " denials in a length of at least 1ms, as in 10 denials in 1min");
  }
  if (!kBanRange.Has(spec.duration)) {
    return bad("for: write how long a ban lasts, " + TextOf(kBanRange.least) + " to " +
               TextOf(kBanRange.most));
  }
  const bool grows = spec.growing != 1;
  if (spec.growing < 1 || (grows ? spec.up_to < spec.duration : spec.up_to != Duration(0))) {
    return bad("growing: write a factor of 2 or more and a length of at least " +
               TextOf(spec.duration) + ", as in 2x up to 1day");
  }
  std::vector<Limit> lengths;
  Duration length = spec.duration;
  while (true) {
    Result<Limit> lasting = Lasting(length, 1);
    if (!lasting) return bad(lasting.error().message);
    lengths.push_back(*std::move(lasting));
    if (!grows || length >= spec.up_to) break;
    if (lengths.size() == kMaxBanLengths) {
      return bad("growing: more than " + std::to_string(kMaxBanLengths) +
                 " steps; write a larger factor");
    }
    length = length > spec.up_to / spec.growing ? spec.up_to : length * spec.growing;
  }
  Result<Limit> denials = Limit::Make({.algorithm = Algorithm::kSlidingLog,
                                       .count = spec.denials,
                                       .period = spec.within,
                                       .max_wait = Duration(0)});
  if (!denials) return bad(denials.error().message);
  std::optional<Limit> steps;
  if (grows) {
    Result<Limit> made = Lasting(spec.up_to, static_cast<std::int64_t>(lengths.size()));
    if (!made) {
      return bad("growing: " + std::to_string(lengths.size()) + " steps of " + TextOf(spec.up_to) +
                 " cannot be remembered: they may add up to 366 days; write a larger factor or a "
                 "shorter length");
    }
    steps = *std::move(made);
  }
  rule.block.emplace(*std::move(denials), std::move(lengths), std::move(steps));
}

}  // namespace weir
