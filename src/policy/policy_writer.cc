// A PolicySpec as a policy file. What is as by default is left out.
#include <algorithm>
#include <charconv>
#include <set>

#include <weir/policy.h>

#include "policy/policy_words.h"
#include "policy/yaml_writer.h"

namespace weir {
namespace {

YamlFlow Text(std::string_view text) { return YamlFlow::Scalar(text); }
YamlFlow Number(std::int64_t number) { return YamlFlow::Verbatim(std::to_string(number)); }
YamlFlow Truth(bool value) { return YamlFlow::Verbatim(value ? "true" : "false"); }
YamlFlow Length(Duration length) { return YamlFlow::Verbatim(TextOf(length)); }
template <typename Meaning, std::size_t size>
YamlFlow In(const std::array<Word<Meaning>, size>& words, Meaning meaning) {
  return YamlFlow::Verbatim(std::string(WordFor(meaning, words)));
}
YamlFlow Percent(double percent) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), percent);
  return YamlFlow::Verbatim(std::string(buffer.data(), end));
}

// Adds what differs from the default.
class Changes {
 public:
  template <typename Value, typename Write>
  Changes& Add(std::string_view key, const Value& value, const Value& by_default, Write&& write) {
    if (!(value == by_default)) map_.Add(key, write(value));
    return *this;
  }
  bool empty() const { return map_.empty(); }
  YamlFlow Finish() const { return map_.Finish(); }
  YamlFlowMap& map() { return map_; }

 private:
  YamlFlowMap map_;
};

// --- match ---

YamlFlow TestFlow(const AttributeTest& test) {
  YamlFlow value = YamlFlow::OneOrList(test.any_of);
  if (test.wants == AttributeTest::Wants::kPresent) value = YamlFlow::Verbatim("present");
  if (test.wants == AttributeTest::Wants::kAbsent) value = YamlFlow::Verbatim("absent");
  return test.negated ? YamlFlowMap().Add("not", value).Finish() : value;
}

YamlFlow MatchFlow(const Match& match);

YamlFlow MatchesFlow(const std::vector<Match>& matches) {
  std::vector<YamlFlow> items;
  items.reserve(matches.size());
  for (const Match& match : matches) items.push_back(MatchFlow(match));
  return items.size() == 1 ? items.front() : YamlFlow::List(items);
}

// A map has every key once: what stands there twice goes into a match of its own.
YamlFlow MatchFlow(const Match& match) {
  YamlFlowMap map;
  std::vector<std::string_view> seen;
  std::vector<YamlFlow> all;
  for (const AttributeTest& test : match.attributes) {
    if (std::ranges::find(seen, test.attribute) == seen.end()) {
      map.Add(test.attribute, TestFlow(test));
      seen.push_back(test.attribute);
    } else {
      all.push_back(YamlFlowMap().Add(test.attribute, TestFlow(test)).Finish());
    }
  }
  for (const Match& inner : match.all) all.push_back(MatchFlow(inner));
  if (!all.empty()) map.Add("all", YamlFlow::List(all));
  if (!match.any.empty()) map.Add("any", MatchesFlow(match.any));
  if (!match.none.empty()) map.Add("not", MatchesFlow(match.none));
  return map.Finish();
}

// --- key ---

YamlFlow KeyAttributeFlow(const KeyAttribute& attribute) {
  Changes settings;
  settings.Add("hash", attribute.hash, false, Truth);
  settings.Add("v4", std::int64_t{attribute.ipv4_prefix}, std::int64_t{0}, Number);
  settings.Add("v6", std::int64_t{attribute.ipv6_prefix}, std::int64_t{0}, Number);
  if (settings.empty()) return Text(attribute.name);
  return YamlFlowMap().Add(attribute.name, settings.Finish()).Finish();
}

YamlFlow KeyPartFlow(const KeyPart& part) {
  if (part.first_of.size() == 1) return KeyAttributeFlow(part.first_of.front());
  std::vector<YamlFlow> items;
  items.reserve(part.first_of.size());
  for (const KeyAttribute& attribute : part.first_of) items.push_back(KeyAttributeFlow(attribute));
  return YamlFlowMap().Add("first_of", YamlFlow::List(items)).Finish();
}

YamlFlow KeyFlow(const KeySpec& key) {
  if (key.empty()) return YamlFlow::Verbatim(std::string(kGlobalKey));
  if (key.size() == 1) return KeyPartFlow(key.front());
  std::vector<YamlFlow> items;
  for (const KeyPart& part : key) items.push_back(KeyPartFlow(part));
  return YamlFlow::List(items);
}

// --- the rest of a rule ---

// header.x-cost as header: x-cost.
void AddPlace(YamlFlowMap& map, const std::string& attribute) {
  const std::size_t dot = attribute.find('.');
  if (dot == std::string::npos) return;
  map.Add(attribute.substr(0, dot), Text(std::string_view(attribute).substr(dot + 1)));
}

YamlFlow CostFlow(const CostSpec& cost) {
  if (cost.attribute.empty()) return Number(cost.fallback);
  const CostSpec by_default;
  Changes changes;
  AddPlace(changes.map(), cost.attribute);
  changes.Add("from", cost.from_anyone, false, [](bool value) { return In(kBelieved, value); });
  changes.Add("default", cost.fallback, by_default.fallback, Number);
  changes.Add("min", cost.min, by_default.min, Number);
  changes.Add("max", cost.max, by_default.max, Number);
  return changes.Finish();
}

YamlFlow BlockFlow(const BlockSpec& block) {
  YamlFlowMap map;
  map.Add("after", Text(std::to_string(block.denials) + " denials in " + TextOf(block.within)));
  map.Add("for", Length(block.duration));
  if (block.growing != 1) {
    map.Add("growing", Text(std::to_string(block.growing) + "x up to " + TextOf(block.up_to)));
  }
  return map.Finish();
}

void WriteOverrides(YamlLines& lines, const RuleSpec& rule) {
  if (rule.overrides.empty() && rule.override_files.empty()) return;
  if (rule.overrides.empty() && rule.override_files.size() == 1) {
    return lines.Entry(2, "overrides", Text(rule.override_files.front()));
  }
  // The keys of a map: only values of keys of one attribute, each once. YAML has bounds for keys.
  constexpr std::size_t kLongestKey = 256;
  std::set<std::string_view> values;
  const bool by_value = rule.override_files.empty() &&
                        std::ranges::all_of(rule.overrides, [&](const OverrideSpec& row) {
                          return row.key.size() == 1 && row.key.front().first.empty() &&
                                 row.key.front().second.size() <= kLongestKey &&
                                 values.insert(row.key.front().second).second;
                        });
  lines.Open(2, "overrides");
  for (const OverrideSpec& row : rule.overrides) {
    if (by_value) {
      lines.Entry(3, row.key.front().second, Text(row.limit));
      continue;
    }
    YamlFlowMap map;
    for (const auto& [name, value] : row.key) {
      map.Add(name.empty() ? kOverrideKeyKey : name, Text(value));
    }
    lines.Line(3, "- " + map.Add(kOverrideLimitKey, Text(row.limit)).Finish().text());
  }
  for (const std::string& file : rule.override_files) {
    lines.Line(3, "- " + YamlFlowMap().Add(kOverrideFileKey, Text(file)).Finish().text());
  }
}

void WriteRule(YamlLines& lines, const RuleSpec& rule) {
  const RuleSpec by_default;
  const auto entry = [&](std::string_view key, bool differs, const YamlFlow& value) {
    if (differs) lines.Entry(2, key, value);
  };
  lines.Line(1, "- name: " + YamlScalar(rule.name));
  entry("match", !rule.match.empty(), MatchFlow(rule.match));
  lines.Entry(2, "key", KeyFlow(rule.key));
  if (!rule.tier_limit.empty()) {
    lines.Entry(2, "limit", YamlFlowMap().Add("tier", Text(rule.tier_limit)).Finish());
  } else {
    lines.Entry(2, "limit", Text(rule.limit));
  }
  entry("algorithm", rule.algorithm != by_default.algorithm, In(kAlgorithms, rule.algorithm));
  entry("align", rule.align != by_default.align, In(kAligns, rule.align));
  entry("zone", rule.zone != by_default.zone, Text(rule.zone));
  entry("week_start", rule.week_start != by_default.week_start, In(kWeekdays, rule.week_start));
  entry("strict", rule.strict, Truth(rule.strict));
  entry("sub_windows", rule.sub_windows != by_default.sub_windows, Number(rule.sub_windows));
  entry("queue", rule.queue, Truth(rule.queue));
  entry("overdraft", rule.overdraft, Truth(rule.overdraft));
  if (rule.cost) lines.Entry(2, "cost", CostFlow(*rule.cost));
  entry("mode", rule.mode != by_default.mode, In(kRuleModes, rule.mode));
  entry("enforce_percent", rule.enforce_percent != by_default.enforce_percent,
        Percent(rule.enforce_percent));
  entry("message", !rule.message.empty(), Text(rule.message));
  if (rule.unidentified) {
    lines.Entry(2, "unidentified", In(kUnidentifiedWords, *rule.unidentified));
  }
  if (rule.on_store_failure) {
    lines.Entry(2, "on_store_failure", In(kFailureModes, *rule.on_store_failure));
  }
  if (rule.block) lines.Entry(2, "block", BlockFlow(*rule.block));
  WriteOverrides(lines, rule);
}

// --- the rest of a policy ---

YamlFlow ListenerFlow(const ListenerSpec& listener) {
  const std::string none;
  Changes tls;
  tls.Add("certificate", listener.tls_certificate, none, Text);
  tls.Add("key", listener.tls_key, none, Text);
  tls.Add("client_ca", listener.tls_client_ca, none, Text);
  if (tls.empty() && listener.token.empty() && listener.manage_token.empty()) {
    return Text(listener.address);
  }
  Changes all;
  all.map().Add("address", Text(listener.address));
  if (!tls.empty()) all.map().Add("tls", tls.Finish());
  all.Add("token", listener.token, none, Text);
  all.Add("manage_token", listener.manage_token, none, Text);
  return all.Finish();
}

YamlFlow IdentityFlow(const IdentitySource& source) {
  Changes changes;
  AddPlace(changes.map(), source.from);
  changes.Add("from", source.from_anyone, false, [](bool value) { return In(kBelieved, value); });
  changes.Add("hash", source.hash, false, Truth);
  changes.Add("default", source.fallback, std::string(), Text);
  return changes.Finish();
}

YamlFlow ClientIpFlow(const ClientIpSpec& spec) {
  const ClientIpSpec by_default;
  Changes changes;
  changes.Add("header", spec.header, by_default.header,
              [](ForwardingHeader header) { return In(kForwardingHeaders, header); });
  changes.Add("hops", std::int64_t{spec.hops}, std::int64_t{0}, Number);
  changes.Add("ipv6_prefix", std::int64_t{spec.ipv6_prefix}, std::int64_t{by_default.ipv6_prefix},
              Number);
  return changes.Finish();
}

YamlFlow RedisFlow(const RedisSpec& redis) {
  const RedisSpec by_default;
  Changes changes;
  changes.Add("connect_timeout", redis.connect_timeout, by_default.connect_timeout, Length);
  changes.Add("timeout", redis.timeout, by_default.timeout, Length);
  changes.Add("connections", redis.connections, by_default.connections, Number);
  changes.Add("max_in_flight", redis.max_in_flight, by_default.max_in_flight, Number);
  return changes.Finish();
}

YamlFlow ServiceLimitsFlow(const ServiceLimits& limits) {
  const ServiceLimits by_default;
  Changes changes;
  changes.Add("connections", limits.connections, by_default.connections, Number);
  changes.Add("per_address", limits.per_address, by_default.per_address, Number);
  changes.Add("pipeline", limits.pipeline, by_default.pipeline, Number);
  changes.Add("output", limits.output, by_default.output, Number);
  changes.Add("waiters", limits.waiters, by_default.waiters, Number);
  changes.Add("header", limits.header, by_default.header, Number);
  changes.Add("body", limits.body, by_default.body, Number);
  changes.Add("command", limits.command, by_default.command, Number);
  changes.Add("buffers", limits.buffers, by_default.buffers, Number);
  changes.Add("idle_timeout", limits.idle_timeout, by_default.idle_timeout, Length);
  changes.Add("header_timeout", limits.header_timeout, by_default.header_timeout, Length);
  changes.Add("write_timeout", limits.write_timeout, by_default.write_timeout, Length);
  return changes.Finish();
}

YamlFlow MemoryFlow(const MemorySpec& memory) {
  Changes changes;
  changes.Add("cap", memory.cap, MemorySpec().cap, Number);
  changes.Add("snapshot", memory.snapshot, std::string(), Text);
  return changes.Finish();
}

YamlFlow HeadersFlow(const std::vector<HeaderFamily>& families) {
  std::vector<YamlFlow> items;
  items.reserve(families.size());
  for (const HeaderFamily family : families) items.push_back(In(kHeaderFamilies, family));
  return YamlFlow::List(items);
}

YamlFlow TierFlow(const TierSpec& tier) {
  YamlFlowMap map;
  for (const auto& [name, limit] : tier) map.Add(name, Text(limit));
  return map.Finish();
}

template <typename Values, typename Write>
void WriteNamed(YamlLines& lines, std::string_view key, const Values& values, Write&& write) {
  if (values.empty()) return;
  lines.Open(0, key);
  for (const auto& [name, value] : values) lines.Entry(1, name, write(value));
}

void WriteMatches(YamlLines& lines, std::string_view key, const std::vector<Match>& matches) {
  if (matches.empty()) return;
  lines.Open(0, key);
  for (const Match& match : matches) lines.Line(1, "- " + MatchFlow(match).text());
}

void WriteService(YamlLines& lines, const PolicySpec& spec) {
  const PolicySpec by_default;
  const auto entry = [&](std::string_view key, bool differs, const YamlFlow& value) {
    if (differs) lines.Entry(0, key, value);
  };
  entry("store", spec.store != by_default.store, YamlFlow::OneOrList(spec.store));
  WriteNamed(lines, "listen", spec.listen, ListenerFlow);
  std::vector<YamlFlow> proxies;
  proxies.reserve(spec.trusted_proxies.size());
  for (const std::string& proxy : spec.trusted_proxies) proxies.push_back(Text(proxy));
  entry("trusted_proxies", !proxies.empty(), YamlFlow::List(proxies));
  WriteNamed(lines, "identity", spec.identity, IdentityFlow);
  entry("client_ip", spec.client_ip != by_default.client_ip, ClientIpFlow(spec.client_ip));
  entry("hash_secret", !spec.hash_secret.empty(), Text(spec.hash_secret));
  entry("headers", spec.headers != by_default.headers, HeadersFlow(spec.headers));
  entry("reset", spec.reset != by_default.reset, In(kResetStyles, spec.reset));
  entry("unidentified", spec.unidentified != by_default.unidentified,
        In(kUnidentifiedWords, spec.unidentified));
  entry("on_store_failure", spec.on_store_failure != by_default.on_store_failure,
        In(kFailureModes, spec.on_store_failure));
  entry("fleet_size", spec.fleet_size != 0, Number(spec.fleet_size));
  entry("max_wait", spec.max_wait != by_default.max_wait, Length(spec.max_wait));
  if (spec.queue_hold) lines.Entry(0, "queue_hold", Length(*spec.queue_hold));
  entry("manage", spec.manage != by_default.manage, In(kManageRights, spec.manage));
  entry("redis", spec.redis != by_default.redis, RedisFlow(spec.redis));
  entry("limits", spec.limits != by_default.limits, ServiceLimitsFlow(spec.limits));
  entry("memory", spec.memory != by_default.memory, MemoryFlow(spec.memory));
}

}  // namespace

std::string ToYaml(const PolicySpec& spec) {
  YamlLines lines;
  WriteService(lines, spec);
  WriteMatches(lines, "allow", spec.allow);
  WriteMatches(lines, "deny", spec.deny);
  WriteNamed(lines, "tiers", spec.tiers, TierFlow);
  if (spec.rules.empty()) {
    lines.Entry(0, "rules", YamlFlow::List({}));
    return lines.Take();
  }
  lines.Open(0, "rules");
  for (const RuleSpec& rule : spec.rules) WriteRule(lines, rule);
  return lines.Take();
}

}  // namespace weir
