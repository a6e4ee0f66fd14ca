// A YAML tree as a PolicySpec: the shape of a policy file.
#pragma once

#include <string_view>
#include <vector>

#include <weir/policy_spec.h>

#include "policy/problems.h"
#include "policy/spec_reader.h"

namespace weir {

// What could be read; what could not is as by default, and among the problems.
PolicySpec ReadPolicy(const YamlNode& root, ProblemList& problems);

// Its parts.
void ReadRule(SpecReader& reader, const Spot& spot, RuleSpec& rule);
void ReadMatch(SpecReader& reader, const Spot& spot, Match& match);
void ReadKey(SpecReader& reader, const Spot& spot, KeySpec& key);
void ReadCost(SpecReader& reader, const Spot& spot, CostSpec& cost);
void ReadBlock(SpecReader& reader, const Spot& spot, BlockSpec& block);
void ReadOverrides(SpecReader& reader, const Spot& spot, RuleSpec& rule);
// Whether a row of a list of overrides names a file of them.
bool IsOverrideFile(const YamlNode& row);
// Several matches: a list of maps, or one map.
void ReadMatches(SpecReader& reader, const Spot& spot, std::vector<Match>& matches);

// Every key that may stand in a policy file, by the kind of map it stands in ("rule", "cost").
struct KeysOfMap {
  std::string_view map;
  std::vector<std::string_view> keys;
};
std::vector<KeysOfMap> AllPolicyKeys();
// Those that the rules and their parts contribute.
std::vector<KeysOfMap> AllRuleKeys();

template <typename Object, std::size_t size>
KeysOfMap KeysOf(std::string_view map, const std::array<Field<Object>, size>& fields) {
  KeysOfMap keys{.map = map, .keys = {}};
  for (const Field<Object>& field : fields) keys.keys.push_back(field.key);
  return keys;
}

}  // namespace weir
