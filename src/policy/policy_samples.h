// Random policies for tests: everything that a file can say, with texts that YAML is easily misled
// by. What they say makes sense to a reader of files, not to one who compiles them.
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <weir/policy_spec.h>

#include "policy/policy_ranges.h"
#include "policy/policy_words.h"

namespace weir {

class PolicySampler {
 public:
  explicit PolicySampler(std::uint64_t seed) : random_(seed) {}

  PolicySpec Next() {
    PolicySpec spec;
    if (Often()) spec.store = Texts(1, 3);
    for (const char* protocol : {"http", "resp", "grpc"}) {
      if (Often()) spec.listen[protocol] = Listener();
    }
    spec.trusted_proxies = Texts(0, 3);
    for (std::size_t i = Below(3); i > 0; --i) spec.identity[Text()] = Source();
    if (Often()) spec.client_ip = ClientIp();
    if (Often()) spec.hash_secret = Text();
    if (Often()) FillService(spec);
    spec.allow = Matches(2);
    spec.deny = Matches(2);
    for (std::size_t i = Below(3); i > 0; --i) {
      TierSpec& tier = spec.tiers[Text()];
      for (std::size_t j = Below(3); j > 0; --j) tier[Text()] = Text();
    }
    for (std::size_t i = Below(4); i > 0; --i) spec.rules.push_back(Rule());
    return spec;
  }

  std::string Text() {
    static const std::string kTexts[] = {
        "a",       "plain words", "",           " ",         " leading",    "trailing ",
        "two  in", "colon: here", "a:b",        "#comment",  "not #one",    "a # comment",
        "\"",      "'",           "it's",       "\\",        "\\n",         "{",
        "}",       "{ a: b }",    "[a, b]",     ",",         "a, b",        "- x",
        "-",       "--- x",       "...",        "? x",       "!tag",        "&anchor",
        "*alias",  "%dir",        "@at",        "`",         "|",           ">",
        "null",    "Null",        "~",          "true",      "False",       "yes",
        "no",      "on",          "off",        "present",   "absent",      "global",
        "any",     "all",         "not",        "first_of",  "file",        "limit",
        "tier",    "0",           "007",        "1e5",       "0x1F",        "1_000",
        ".5",      ".inf",        "-1",         "+1",        "12:30:45",    "2001-01-01",
        "<<",      "=",           "\t",         "tab\there", "line\nbreak", "\n",
        "cr\rlf",  "\x1b[31m",    "\x7f",       "\u0085",    "\u009f",      "\u00a0",
        "\u2028",  "\ufeff",      "\uffff",     "\u00e9",    "\U0001F600",  "\u65e5\u672c",
        "100/min", "/auth/**",    "10.0.0.0/8", "[::1]:80",  "$x",          "^y",
    };
    switch (Below(12)) {
      case 0:
        return kTexts[Below(std::size(kTexts))] + kTexts[Below(std::size(kTexts))];
      case 1:
        return std::string(1, '\0') + "x";
      case 2:
        return std::string(Below(300), 'x');
      default:
        return kTexts[Below(std::size(kTexts))];
    }
  }

 private:
  std::size_t Below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  bool Often() { return Below(2) == 0; }

  template <typename Value>
  Value In(const Range<Value>& range) {
    return std::uniform_int_distribution<Value>(range.least, range.most)(random_);
  }
  Duration In(const Range<Duration>& range) {
    // Of all sizes: short ones would never come up otherwise.
    const std::int64_t most = range.most.count() >> Below(40);
    return std::max(range.least, Duration(In(Range<std::int64_t>{0, most})));
  }
  template <typename Meaning, std::size_t size>
  Meaning OneOf(const std::array<Word<Meaning>, size>& words) {
    return words[Below(size)].meaning;
  }

  std::vector<std::string> Texts(std::size_t least, std::size_t most) {
    std::vector<std::string> texts;
    for (std::size_t i = least + Below(most - least + 1); i > 0; --i) texts.push_back(Text());
    return texts;
  }
  std::string Place(std::size_t kinds) {
    return std::string(kNamedPlaces[Below(kinds)]) + "." + Text();
  }

  ListenerSpec Listener() {
    ListenerSpec listener{.address = Text()};
    for (std::string* text : {&listener.tls_certificate, &listener.tls_key, &listener.tls_client_ca,
                              &listener.token, &listener.manage_token}) {
      if (Often()) *text = Text();
    }
    return listener;
  }

  IdentitySource Source() {
    return {.from = Often() ? Place(3) : "",
            .from_anyone = Often(),
            .hash = Often(),
            .fallback = Often() ? Text() : ""};
  }

  ClientIpSpec ClientIp() {
    return {.header = OneOf(kForwardingHeaders),
            .hops = Often() ? 0 : In(kHopRange),
            .ipv6_prefix = In(kDefaultIpv6PrefixRange)};
  }

  void FillService(PolicySpec& spec) {
    spec.headers.clear();
    for (std::size_t i = Below(3); i > 0; --i) spec.headers.push_back(OneOf(kHeaderFamilies));
    spec.reset = OneOf(kResetStyles);
    spec.unidentified = OneOf(kUnidentifiedWords);
    spec.on_store_failure = OneOf(kFailureModes);
    spec.fleet_size = Often() ? 0 : In(kFleetRange);
    spec.max_wait = In(kWaitRange);
    if (Often()) spec.queue_hold = In(kWaitRange);
    spec.manage = OneOf(kManageRights);
    spec.redis = {.connect_timeout = In(kTimeoutRange),
                  .timeout = In(kTimeoutRange),
                  .connections = In(kConnectionRange),
                  .max_in_flight = In(kInFlightRange)};
    spec.limits = {.connections = In(kServiceCountRange),
                   .per_address = In(kServiceCountRange),
                   .pipeline = In(kServiceCountRange),
                   .output = In(kServiceSizeRange),
                   .waiters = In(kServiceCountRange),
                   .header = In(kServiceSizeRange),
                   .body = In(kServiceSizeRange),
                   .command = In(kCommandSizeRange),
                   .buffers = In(kBuffersRange),
                   .idle_timeout = In(kIdleRange),
                   .header_timeout = In(kClientRange),
                   .write_timeout = In(kClientRange)};
    spec.memory = {.cap = In(kMemoryCapRange), .snapshot = Text()};
  }

  // Each attribute once, and none that a match has another use for.
  Match NextMatch(int depth) {
    Match match;
    std::set<std::string> seen = {"any", "all", "not"};
    for (std::size_t i = Below(3); i > 0; --i) {
      AttributeTest test = Test();
      if (seen.insert(test.attribute).second) match.attributes.push_back(std::move(test));
    }
    if (depth == 0) return match;
    for (std::vector<Match>* parts : {&match.all, &match.any, &match.none}) {
      if (Below(4) == 0) *parts = Matches(3, depth - 1);
    }
    return match;
  }
  std::vector<Match> Matches(std::size_t most, int depth = 2) {
    std::vector<Match> matches;
    for (std::size_t i = Below(most + 1); i > 0; --i) matches.push_back(NextMatch(depth));
    return matches;
  }
  AttributeTest Test() {
    AttributeTest test{.attribute = Text()};
    if (Below(4) == 0) test.wants = AttributeTest::Wants::kPresent;
    if (Below(4) == 0) test.wants = AttributeTest::Wants::kAbsent;
    if (test.wants == AttributeTest::Wants::kValue) test.any_of = Texts(1, 3);
    test.negated = Below(3) == 0;
    return test;
  }

  KeyAttribute NextKeyAttribute() {
    std::string name = Text();
    if (name == kGlobalKey || name == "first_of") name = "ip";
    KeyAttribute attribute(std::move(name));
    if (Often()) return attribute;
    attribute.hash = Often();
    attribute.ipv4_prefix = Often() ? 0 : In(kIpv4PrefixRange);
    attribute.ipv6_prefix = Often() ? 0 : In(kIpv6PrefixRange);
    return attribute;
  }
  KeySpec Key() {
    KeySpec key;
    for (std::size_t i = Below(4); i > 0; --i) {
      std::vector<KeyAttribute> first_of;
      for (std::size_t j = Below(3) + 1; j > 0; --j) first_of.push_back(NextKeyAttribute());
      key.emplace_back(std::move(first_of));
    }
    return key;
  }

  CostSpec Cost() {
    if (Often()) return {.fallback = In(kCostRange)};
    return {.attribute = Place(4),
            .from_anyone = Often(),
            .fallback = In(kCostRange),
            .min = In(kCostRange),
            .max = In(kCostRange)};
  }
  BlockSpec Block() {
    BlockSpec block{.denials = In(kCostRange),
                    .within = In(Range<Duration>{Duration(0), kMaxPeriod}),
                    .duration = In(kBanRange)};
    if (Often()) return block;
    block.growing = In(Range<std::int64_t>{2, kMaxCount});
    block.up_to = In(Range<Duration>{Duration(0), kMaxPeriod});
    return block;
  }
  OverrideSpec Override(bool by_value) {
    OverrideSpec row;
    row.limit = Text();
    if (by_value) {
      row.key.emplace_back("", Text());
      return row;
    }
    std::set<std::string> seen = {"limit", "key"};
    for (std::size_t i = Below(3); i > 0; --i) {
      std::string name = Text();
      if (seen.insert(name).second) row.key.emplace_back(std::move(name), Text());
    }
    return row;
  }

  RuleSpec Rule() {
    RuleSpec rule{.name = Text(), .match = NextMatch(2), .key = Key()};
    // One of the two; a file cannot say both.
    (Often() ? rule.limit : rule.tier_limit) = Text();
    rule.algorithm = OneOf(kAlgorithms);
    rule.align = OneOf(kAligns);
    if (Often()) rule.zone = Text();
    rule.week_start = OneOf(kWeekdays);
    rule.strict = Often();
    rule.sub_windows = In(kSubWindowRange);
    rule.queue = Often();
    rule.overdraft = Often();
    if (Often()) rule.cost = Cost();
    rule.mode = OneOf(kRuleModes);
    if (Often()) rule.enforce_percent = std::uniform_real_distribution(0.0, 100.0)(random_);
    if (Often()) rule.message = Text();
    if (Often()) rule.unidentified = OneOf(kUnidentifiedWords);
    if (Often()) rule.on_store_failure = OneOf(kFailureModes);
    if (Often()) rule.block = Block();
    const bool by_value = Often();
    for (std::size_t i = Below(4); i > 0; --i) rule.overrides.push_back(Override(by_value));
    rule.override_files = Texts(0, 2);
    return rule;
  }

  std::mt19937_64 random_;
};

}  // namespace weir
