#include "server/schema_command.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "limit/limit_words.h"
#include "policy/policy_reader.h"
#include "policy/policy_words.h"

namespace weir {
namespace {

using Json = nlohmann::json;
using Texts = std::set<std::string>;

Json Schema() {
  std::istringstream in;
  std::ostringstream out, err;
  EXPECT_EQ(RunSchema({.in = in, .out = out, .err = err}), kExitOk);
  Json schema = Json::parse(out.str(), nullptr, false);
  EXPECT_FALSE(schema.is_discarded());
  return schema;
}

// The part of the schema that is about a kind of map; the outermost is the policy.
Json PartOf(const Json& schema, std::string map) {
  if (map == "policy") return schema;
  std::ranges::replace(map, ' ', '_');
  const Json& parts = schema["$defs"];
  return parts.contains(map) ? parts[map] : Json::object();
}

Texts KeysOfObject(const Json& object) {
  Texts keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

TEST(Schema, HasExactlyTheKeysThatPoliciesMayHave) {
  const Json schema = Schema();
  for (const KeysOfMap& map : AllPolicyKeys()) {
    const Json part = PartOf(schema, std::string(map.map));
    EXPECT_EQ(KeysOfObject(part.value("properties", Json::object())),
              Texts(map.keys.begin(), map.keys.end()))
        << map.map;
    EXPECT_EQ(part.value("additionalProperties", true), false) << map.map;
  }
}

TEST(Schema, SaysWhatEveryKeyMeans) {
  const Json schema = Schema();
  for (const KeysOfMap& map : AllPolicyKeys()) {
    const Json properties = PartOf(schema, std::string(map.map))["properties"];
    for (const auto& [key, property] : properties.items()) {
      // Itself, or by the part that it refers to.
      const std::string reference = property.value("$ref", "");
      const Json referred =
          reference.empty() ? Json::object() : schema[Json::json_pointer(reference.substr(1))];
      const bool listener = map.map == "listen";
      EXPECT_TRUE(property.contains("title") || referred.contains("title") || listener)
          << map.map << "." << key;
    }
  }
}

template <typename Meaning, std::size_t size>
void ExpectWords(const Json& part, const std::array<Word<Meaning>, size>& words) {
  Texts expected;
  for (const Word<Meaning>& word : words) expected.insert(std::string(word.text));
  EXPECT_EQ(part.value("enum", Texts()), expected) << part;
}

TEST(Schema, HasExactlyTheWordsThatPoliciesMayHave) {
  const Json schema = Schema();
  const Json& parts = schema["$defs"];
  const Json& rule = parts["rule"]["properties"];
  ExpectWords(rule["algorithm"], kAlgorithms);
  ExpectWords(rule["align"], kAligns);
  ExpectWords(rule["week_start"], kWeekdays);
  ExpectWords(rule["mode"], kRuleModes);
  ExpectWords(parts["failure_mode"], kFailureModes);
  ExpectWords(parts["unidentified"], kUnidentifiedWords);
  ExpectWords(parts["believed"], kBelieved);
  ExpectWords(parts["header_family"], kHeaderFamilies);
  ExpectWords(parts["client_ip"]["properties"]["header"], kForwardingHeaders);
  ExpectWords(schema["properties"]["reset"], kResetStyles);
  ExpectWords(schema["properties"]["manage"], kManageRights);
}

}  // namespace
}  // namespace weir
