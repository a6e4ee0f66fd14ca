// A rule of a policy file and its parts.
#include <charconv>
#include <utility>

#include "limit/limit_words.h"
#include "policy/policy_reader.h"

namespace weir {
namespace {

using NodeKind = YamlNode::Kind;

// --- match ---

bool IsWord(const YamlNode& node, std::string_view word) {
  return node.kind == NodeKind::kScalar && !node.quoted && node.text == word;
}

// Values, among which the two words would read like any other.
void ReadValues(SpecReader& reader, const Spot& spot, std::vector<std::string>& values) {
  reader.ReadEach(spot, [&](const Spot& item) {
    if (IsWord(item.node, "present") || IsWord(item.node, "absent")) {
      reader.Report(ProblemCode::kWrongType, item.where,
                    item.node.text +
                        " stands alone, not among values; put it into quotes if it "
                        "is one");
    } else if (std::string text; reader.ReadText(item, text)) {
      values.push_back(std::move(text));
    }
  });
}

void ReadAttributeTest(SpecReader& reader, const Spot& spot, AttributeTest& test) {
  if (spot.node.kind == NodeKind::kMap) {
    // { not: VALUE }, or { any: [...] } for those who like to say so.
    if (spot.node.entries.size() == 1) {
      const YamlNode::Entry& only = spot.node.entries.front();
      const Where where(spot.where, only.key);
      if (only.key == "not") {
        test.negated = !test.negated;
        return ReadAttributeTest(reader, {only.value, where}, test);
      }
      if (only.key == "any") return ReadValues(reader, {only.value, where}, test.any_of);
    }
    reader.Report(ProblemCode::kWrongType, spot.where,
                  "expected a value, a list of values, present, absent, or { not: ... }");
    return;
  }
  if (IsWord(spot.node, "present")) {
    test.wants = AttributeTest::Wants::kPresent;
  } else if (IsWord(spot.node, "absent")) {
    test.wants = AttributeTest::Wants::kAbsent;
  } else {
    ReadValues(reader, spot, test.any_of);
  }
}

// --- key ---

constexpr std::array<Field<KeyAttribute>, 3> kKeyAttributeFields = {{
    {"hash", [](SpecReader& reader, const Spot& spot,
                KeyAttribute& attribute) { reader.ReadBool(spot, attribute.hash); }},
    {"v4",
     [](SpecReader& reader, const Spot& spot, KeyAttribute& attribute) {
       reader.ReadInt(spot, attribute.ipv4_prefix, kIpv4PrefixRange);
     }},
    {"v6",
     [](SpecReader& reader, const Spot& spot, KeyAttribute& attribute) {
       reader.ReadInt(spot, attribute.ipv6_prefix, kIpv6PrefixRange);
     }},
}};

// `user`, or `ip: { v6: 56 }`.
void ReadKeyAttribute(SpecReader& reader, const Spot& spot, std::vector<KeyAttribute>& into) {
  if (spot.node.kind == NodeKind::kMap && spot.node.entries.size() == 1) {
    const YamlNode::Entry& only = spot.node.entries.front();
    const Where where(spot.where, only.key);
    reader.ReadMap({only.value, where}, kKeyAttributeFields, into.emplace_back(only.key));
    return;
  }
  std::string name;
  if (spot.node.kind == NodeKind::kMap) {
    reader.Report(ProblemCode::kWrongType, spot.where,
                  "expected one attribute with its settings, { ip: { v6: 56 } }; several are a "
                  "list of them");
  } else if (reader.ReadText(spot, name)) {
    into.emplace_back(std::move(name));
  }
}

bool IsEmptyList(const YamlNode& node) {
  return node.kind == NodeKind::kList && node.items.empty();
}

void ReadKeyPart(SpecReader& reader, const Spot& spot, KeySpec& key) {
  std::vector<KeyAttribute> attributes;
  if (const YamlNode* first_of = spot.node.Find("first_of");
      first_of != nullptr && spot.node.entries.size() == 1) {
    const Where where(spot.where, "first_of");
    if (IsEmptyList(*first_of)) {
      reader.Report(ProblemCode::kMissing, where, "first_of is empty; name some attributes");
    }
    reader.ReadEach({*first_of, where},
                    [&](const Spot& item) { ReadKeyAttribute(reader, item, attributes); });
  } else {
    ReadKeyAttribute(reader, spot, attributes);
  }
  if (!attributes.empty()) key.emplace_back(std::move(attributes));
}

// --- limit ---

void ReadLimit(SpecReader& reader, const Spot& spot, RuleSpec& rule) {
  if (spot.node.kind != NodeKind::kMap) {
    reader.ReadText(spot, rule.limit);
    return;
  }
  constexpr std::array<Field<RuleSpec>, 1> kFields = {{
      {"tier", [](SpecReader& its_reader, const Spot& its_spot,
                  RuleSpec& its_rule) { its_reader.ReadText(its_spot, its_rule.tier_limit); }},
  }};
  reader.ReadMap(spot, kFields, rule);
}

// --- cost ---

template <std::size_t place>
void ReadCostPlace(SpecReader& reader, const Spot& spot, CostSpec& cost) {
  std::string name;
  if (!reader.ReadText(spot, name)) return;
  if (!cost.attribute.empty()) {
    return reader.Report(
        ProblemCode::kBadCost, spot.where,
        "the cost comes from " + Quoted(cost.attribute) + " already; keep one of the two");
  }
  cost.attribute = std::string(kNamedPlaces[place]) + "." + name;
}
template <std::int64_t CostSpec::* member>
void ReadCostCount(SpecReader& reader, const Spot& spot, CostSpec& cost) {
  reader.ReadCount(spot, cost.*member, kCostRange);
}
constexpr std::array<Field<CostSpec>, 8> kCostFields = {{
    {"header", ReadCostPlace<0>},
    {"cookie", ReadCostPlace<1>},
    {"query", ReadCostPlace<2>},
    {"descriptor", ReadCostPlace<3>},
    {"from", [](SpecReader& reader, const Spot& spot,
                CostSpec& cost) { reader.ReadWord(spot, kBelieved, cost.from_anyone); }},
    {"default", ReadCostCount<&CostSpec::fallback>},
    {"min", ReadCostCount<&CostSpec::min>},
    {"max", ReadCostCount<&CostSpec::max>},
}};

// --- block ---

// Splits "10 denials in 1min" at blanks.
std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) return words;
    text.remove_prefix(start);
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

void ReadBlockAfter(SpecReader& reader, const Spot& spot, BlockSpec& block) {
  std::string text;
  if (!reader.ReadText(spot, text)) return;
  const std::vector<std::string_view> words = Words(text);
  const bool shaped =
      words.size() == 4 && (words[1] == "denials" || words[1] == "denial") && words[2] == "in";
  const auto denials = shaped ? ParseCount(words[0]) : std::nullopt;
  const auto within = shaped ? ParseLength(words[3]) : std::nullopt;
  if (!denials || !within) {
    return reader.Report(ProblemCode::kBadBlock, spot.where,
                         Quoted(text) + ": write a count and a length, as in 10 denials in 1min");
  }
  block.denials = *denials;
  block.within = *within;
}

void ReadBlockGrowing(SpecReader& reader, const Spot& spot, BlockSpec& block) {
  std::string text;
  if (!reader.ReadText(spot, text)) return;
  const std::vector<std::string_view> words = Words(text);
  const bool shaped =
      words.size() == 4 && words[0].ends_with('x') && words[1] == "up" && words[2] == "to";
  const auto factor = shaped ? ParseCount(words[0].substr(0, words[0].size() - 1)) : std::nullopt;
  const auto up_to = shaped ? ParseLength(words[3]) : std::nullopt;
  if (!factor || *factor < 2 || !up_to) {
    return reader.Report(
        ProblemCode::kBadBlock, spot.where,
        Quoted(text) + ": write a factor of 2 or more and a length, as in 2x up to 1day");
  }
  block.growing = *factor;
  block.up_to = *up_to;
}

constexpr std::array<Field<BlockSpec>, 3> kBlockFields = {{
    {"after", ReadBlockAfter},
    {"for", [](SpecReader& reader, const Spot& spot,
               BlockSpec& block) { reader.ReadLength(spot, block.duration, kBanRange); }},
    {"growing", ReadBlockGrowing},
}};

// --- overrides ---

// - { user: ann, limit: 1000/min }, - { key: ann, limit: ... } or - { file: customers.csv }
void ReadOverrideRow(SpecReader& reader, const Spot& spot, RuleSpec& rule) {
  if (IsOverrideFile(spot.node)) {
    const Where where(spot.where, kOverrideFileKey);
    reader.ReadText({spot.node.entries.front().value, where}, rule.override_files.emplace_back());
    return;
  }
  // One for each row of the list, also for those that are wrong: places are found by counting.
  OverrideSpec& row = rule.overrides.emplace_back();
  if (!reader.IsMap(spot)) return;
  for (const YamlNode::Entry& entry : spot.node.entries) {
    const Where where(spot.where, entry.key);
    std::string text;
    if (!reader.ReadText({entry.value, where}, text)) continue;
    if (entry.key == kOverrideLimitKey) {
      row.limit = std::move(text);
    } else {
      row.key.emplace_back(entry.key == kOverrideKeyKey ? "" : entry.key, std::move(text));
    }
  }
}

// --- rule ---

void ReadPercent(SpecReader& reader, const Spot& spot, double& percent) {
  std::string text;
  if (!reader.ReadText(spot, text)) return;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || read_to != end || !(value >= 0 && value <= 100)) {
    return reader.Report(ProblemCode::kBadPercent, spot.where,
                         Quoted(text) + " is no share; write 0 to 100");
  }
  percent = value;
}

constexpr std::array<Field<RuleSpec>, 20> kRuleFields = {{
    {"name", [](SpecReader& reader, const Spot& spot,
                RuleSpec& rule) { reader.ReadText(spot, rule.name); }},
    {"match", [](SpecReader& reader, const Spot& spot,
                 RuleSpec& rule) { ReadMatch(reader, spot, rule.match); }},
    {"key",
     [](SpecReader& reader, const Spot& spot, RuleSpec& rule) { ReadKey(reader, spot, rule.key); }},
    {"limit", ReadLimit},
    {"algorithm", [](SpecReader& reader, const Spot& spot,
                     RuleSpec& rule) { reader.ReadWord(spot, kAlgorithms, rule.algorithm); }},
    {"align", [](SpecReader& reader, const Spot& spot,
                 RuleSpec& rule) { reader.ReadWord(spot, kAligns, rule.align); }},
    {"zone", [](SpecReader& reader, const Spot& spot,
                RuleSpec& rule) { reader.ReadText(spot, rule.zone); }},
    {"week_start", [](SpecReader& reader, const Spot& spot,
                      RuleSpec& rule) { reader.ReadWord(spot, kWeekdays, rule.week_start); }},
    {"strict", [](SpecReader& reader, const Spot& spot,
                  RuleSpec& rule) { reader.ReadBool(spot, rule.strict); }},
    {"sub_windows",
     [](SpecReader& reader, const Spot& spot, RuleSpec& rule) {
       reader.ReadInt(spot, rule.sub_windows, kSubWindowRange);
     }},
    {"queue", [](SpecReader& reader, const Spot& spot,
                 RuleSpec& rule) { reader.ReadBool(spot, rule.queue); }},
    {"overdraft", [](SpecReader& reader, const Spot& spot,
                     RuleSpec& rule) { reader.ReadBool(spot, rule.overdraft); }},
    {"cost", [](SpecReader& reader, const Spot& spot,
                RuleSpec& rule) { ReadCost(reader, spot, rule.cost.emplace()); }},
    {"mode", [](SpecReader& reader, const Spot& spot,
                RuleSpec& rule) { reader.ReadWord(spot, kRuleModes, rule.mode); }},
    {"enforce_percent", [](SpecReader& reader, const Spot& spot,
                           RuleSpec& rule) { ReadPercent(reader, spot, rule.enforce_percent); }},
    {"message", [](SpecReader& reader, const Spot& spot,
                   RuleSpec& rule) { reader.ReadText(spot, rule.message); }},
    {"unidentified",
     [](SpecReader& reader, const Spot& spot, RuleSpec& rule) {
       reader.ReadWord(spot, kUnidentifiedWords, rule.unidentified.emplace());
     }},
    {"on_store_failure",
     [](SpecReader& reader, const Spot& spot, RuleSpec& rule) {
       reader.ReadWord(spot, kFailureModes, rule.on_store_failure.emplace());
     }},
    {"block", [](SpecReader& reader, const Spot& spot,
                 RuleSpec& rule) { ReadBlock(reader, spot, rule.block.emplace()); }},
    {"overrides", ReadOverrides},
}};

}  // namespace

void ReadMatch(SpecReader& reader, const Spot& spot, Match& match) {
  if (!reader.IsMap(spot)) return;
  for (const YamlNode::Entry& entry : spot.node.entries) {
    const Where where(spot.where, entry.key);
    const Spot value{entry.value, where};
    const bool of_matches = entry.key == "all" || entry.key == "any" || entry.key == "not";
    if (of_matches && IsEmptyList(entry.value)) {
      reader.Report(ProblemCode::kMissing, where,
                    "the list is empty; name some attributes, or remove it");
      continue;
    }
    if (entry.key == "all") {
      ReadMatches(reader, value, match.all);
    } else if (entry.key == "any") {
      ReadMatches(reader, value, match.any);
    } else if (entry.key == "not") {
      ReadMatches(reader, value, match.none);
    } else {
      AttributeTest& test = match.attributes.emplace_back();
      test.attribute = entry.key;
      ReadAttributeTest(reader, value, test);
    }
  }
}

void ReadMatches(SpecReader& reader, const Spot& spot, std::vector<Match>& matches) {
  reader.ReadEach(spot, [&](const Spot& item) { ReadMatch(reader, item, matches.emplace_back()); });
}

void ReadKey(SpecReader& reader, const Spot& spot, KeySpec& key) {
  const bool global = spot.node.kind == NodeKind::kScalar && spot.node.text == kGlobalKey;
  if (global) return;
  if (IsEmptyList(spot.node)) {
    reader.Report(ProblemCode::kMissing, spot.where,
                  "the key is empty; name attributes, or write key: global if all requests share "
                  "one count");
  }
  reader.ReadEach(spot, [&](const Spot& item) { ReadKeyPart(reader, item, key); });
}

void ReadCost(SpecReader& reader, const Spot& spot, CostSpec& cost) {
  if (spot.node.kind == NodeKind::kMap) return reader.ReadMap(spot, kCostFields, cost);
  reader.ReadCount(spot, cost.fallback, kCostRange);
}

void ReadBlock(SpecReader& reader, const Spot& spot, BlockSpec& block) {
  reader.ReadMap(spot, kBlockFields, block);
}

// A file; or keys with their limits; or rows, for keys of several attributes.
void ReadOverrides(SpecReader& reader, const Spot& spot, RuleSpec& rule) {
  if (spot.node.kind == NodeKind::kMap) {
    for (const YamlNode::Entry& entry : spot.node.entries) {
      const Where where(spot.where, entry.key);
      OverrideSpec& row = rule.overrides.emplace_back();
      row.key.emplace_back("", entry.key);
      reader.ReadText({entry.value, where}, row.limit);
    }
  } else if (spot.node.kind == NodeKind::kList) {
    reader.ReadEach(spot, [&](const Spot& item) { ReadOverrideRow(reader, item, rule); });
  } else if (std::string file; reader.ReadText(spot, file)) {
    rule.override_files.push_back(std::move(file));
  }
}

void ReadRule(SpecReader& reader, const Spot& spot, RuleSpec& rule) {
  reader.ReadMap(spot, kRuleFields, rule);
  // Everything else that is missing can be told from the spec, but no key is a key: global.
  if (spot.node.kind != NodeKind::kMap || spot.node.Find("key") != nullptr) return;
  reader.Report(ProblemCode::kMissing, Where(spot.where, "key"),
                "the rule has no key; write key: ip, user, ... or global");
}

bool IsOverrideFile(const YamlNode& row) {
  return row.kind == NodeKind::kMap && row.entries.size() == 1 &&
         row.entries.front().key == kOverrideFileKey;
}

std::vector<KeysOfMap> AllRuleKeys() {
  return {KeysOf("rule", kRuleFields), KeysOf("cost", kCostFields), KeysOf("block", kBlockFields),
          KeysOf("key attribute", kKeyAttributeFields)};
}

}  // namespace weir
