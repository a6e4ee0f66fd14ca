// Whether the texts of a policy can be written to a file. What was read from one always can; what
// was made in code may hold any bytes.
#include <simdjson.h>

#include "policy/policy_compiler.h"

namespace weir {
namespace {

class TextChecker {
 public:
  explicit TextChecker(ProblemList& problems) : problems_(problems) {}

  void CheckService(const PolicySpec& spec) {
    CheckAll(spec.store, Where(top_, "store"));
    const Where listen(top_, "listen");
    for (const auto& [protocol, listener] : spec.listen) {
      const Where where(listen, protocol);
      Check(protocol, where);
      for (const std::string* text :
           {&listener.address, &listener.tls_certificate, &listener.tls_key,
            &listener.tls_client_ca, &listener.token, &listener.manage_token}) {
        Check(*text, where);
      }
    }
    CheckAll(spec.trusted_proxies, Where(top_, "trusted_proxies"));
    const Where identity(top_, "identity");
    for (const auto& [attribute, source] : spec.identity) {
      const Where where(identity, attribute);
      for (const std::string* text : {&attribute, &source.from, &source.fallback}) {
        Check(*text, where);
      }
    }
    Check(spec.hash_secret, Where(top_, "hash_secret"));
    Check(spec.memory.snapshot, Where(Where(top_, "memory"), "snapshot"));
  }

  void CheckLists(const PolicySpec& spec) {
    CheckEach(spec.allow, Where(top_, "allow"));
    CheckEach(spec.deny, Where(top_, "deny"));
    const Where tiers(top_, "tiers");
    for (const auto& [tier, limits] : spec.tiers) {
      const Where where(tiers, tier);
      Check(tier, where);
      for (const auto& [name, limit] : limits) {
        Check(name, Where(where, name));
        Check(limit, Where(where, name));
      }
    }
  }

  void CheckRules(const PolicySpec& spec) {
    const Where rules(top_, "rules");
    for (std::size_t i = 0; i < spec.rules.size(); ++i) CheckRule(spec.rules[i], Where(rules, i));
  }

 private:
  void Check(std::string_view text, const Where& where) {
    if (simdjson::validate_utf8(text)) return;
    problems_.Add(ProblemCode::kEncoding, where,
                  "the text is not UTF-8, so no file can hold it; convert it");
  }

  void CheckAll(const std::vector<std::string>& texts, const Where& where) {
    for (std::size_t i = 0; i < texts.size(); ++i) Check(texts[i], Where(where, i));
  }

  void CheckEach(const std::vector<Match>& matches, const Where& where) {
    for (std::size_t i = 0; i < matches.size(); ++i) CheckMatch(matches[i], Where(where, i));
  }

  void CheckMatch(const Match& match, const Where& where) {
    for (const AttributeTest& test : match.attributes) {
      const Where test_where(where, test.attribute);
      Check(test.attribute, test_where);
      CheckAll(test.any_of, test_where);
    }
    CheckEach(match.all, Where(where, "all"));
    CheckEach(match.any, Where(where, "any"));
    CheckEach(match.none, Where(where, "not"));
  }

  void CheckRule(const RuleSpec& rule, const Where& where) {
    Check(rule.name, Where(where, "name"));
    CheckMatch(rule.match, Where(where, "match"));
    for (const KeyPart& part : rule.key) {
      for (const KeyAttribute& attribute : part.first_of)
        Check(attribute.name, Where(where, "key"));
    }
    Check(rule.limit, Where(where, "limit"));
    Check(rule.tier_limit, Where(where, "limit"));
    Check(rule.zone, Where(where, "zone"));
    if (rule.cost) Check(rule.cost->attribute, Where(where, "cost"));
    Check(rule.message, Where(where, "message"));
    const Where overrides(where, "overrides");
    for (std::size_t i = 0; i < rule.overrides.size(); ++i) {
      const Where row(overrides, i);
      for (const auto& [attribute, value] : rule.overrides[i].key) {
        Check(attribute, row);
        Check(value, row);
      }
      Check(rule.overrides[i].limit, row);
    }
    for (const std::string& file : rule.override_files) Check(file, overrides);
  }

  const Where top_;
  ProblemList& problems_;
};

}  // namespace

void CheckTexts(const PolicySpec& spec, ProblemList& problems) {
  TextChecker checker(problems);
  checker.CheckService(spec);
  checker.CheckLists(spec);
  checker.CheckRules(spec);
}

}  // namespace weir
