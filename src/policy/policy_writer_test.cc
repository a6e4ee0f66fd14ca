#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <weir/policy.h>

#include "policy/policy_reader.h"
#include "policy/policy_samples.h"
#include "policy/yaml_writer.h"

namespace weir {
namespace {

// What a file that is written is read as, if it can be read without a problem.
std::optional<PolicySpec> ReadBack(const PolicySpec& spec, std::string& why_not) {
  const std::string yaml = ToYaml(spec);
  const YamlReport report = ReadYaml(yaml);
  for (const YamlProblem& problem : report.problems) why_not += problem.message + "\n";
  why_not += yaml;
  if (!report.root) return std::nullopt;
  ProblemList problems("");
  problems.SetTree(&*report.root);
  PolicySpec read = ReadPolicy(*report.root, problems);
  for (const Problem& problem : problems.Take()) {
    why_not += problem.ToString() + "\n";
    if (problem.severity == Severity::kError) return std::nullopt;
  }
  return read;
}

RC_GTEST_PROP(ToYaml, IsReadBackToTheSamePolicy, (std::uint64_t seed)) {
  PolicySampler sampler(seed);
  for (int i = 0; i < 20; ++i) {
    const PolicySpec spec = sampler.Next();
    std::string why_not;
    const std::optional<PolicySpec> read = ReadBack(spec, why_not);
    if (!read || *read != spec) RC_FAIL(why_not);
  }
}

RC_GTEST_PROP(YamlScalar, IsReadBackToTheSameText, (std::uint64_t seed)) {
  PolicySampler sampler(seed);
  for (int i = 0; i < 100; ++i) {
    const std::string text = sampler.Text();
    const std::string yaml = YamlScalar(text) + ": [" + YamlScalar(text) + "]\n";
    const YamlReport report = ReadYaml(yaml);
    if (!report.root) RC_FAIL(yaml);
    RC_ASSERT(report.root->entries.at(0).key == text);
    RC_ASSERT(report.root->entries.at(0).value.items.at(0).text == text);
  }
}

TEST(YamlScalar, EscapesEveryControlCharacterSoThatItIsReadBack) {
  for (int c = 0; c < 0xa0; ++c) {
    if (c >= 0x20 && c < 0x7f) continue;
    const std::string text = c < 0x80 ? std::string(1, static_cast<char>(c))
                                      : "\xc2" + std::string(1, static_cast<char>(c));
    const YamlReport report = ReadYaml("a: " + YamlScalar(text));
    ASSERT_TRUE(report.root.has_value()) << c;
    EXPECT_EQ(report.root->entries.at(0).value.text, text) << c;
  }
}

TEST(YamlScalar, LeavesWhatIsPlainAsItIs) {
  for (const std::string text : {"ip", "100/min burst 50", "10.0.0.0/8", "/auth/login", "x-user-id",
                                 "Too many authentication attempts", "a+b@c.org", "42"}) {
    EXPECT_EQ(YamlScalar(text), text);
  }
  EXPECT_EQ(YamlScalar("present"), "\"present\"");
  EXPECT_EQ(YamlScalar("OFF"), "\"OFF\"");
  EXPECT_EQ(YamlScalar("a: b"), "\"a: b\"");
  EXPECT_EQ(YamlScalar("say \"hi\""), R"("say \"hi\"")");
}

TEST(ToYaml, LeavesOutWhatIsAsByDefault) {
  EXPECT_EQ(ToYaml({}), "rules: []\n");
  PolicySpec spec;
  spec.rules = {{.name = "per-ip", .key = {"ip"}, .limit = "200/min"}};
  EXPECT_EQ(ToYaml(spec), "rules:\n  - name: per-ip\n    key: ip\n    limit: 200/min\n");
}

TEST(ToYaml, WritesEveryPartAsPeopleDo) {
  PolicySpec spec;
  spec.identity = {{"tier", {.from = "header.x-tier", .fallback = "free"}}};
  spec.tiers = {{"free", {{"r", "10/min"}}}};
  spec.allow = {Match{{"path", {"/healthz"}}}};
  spec.memory.cap = std::int64_t{1} << 30;
  spec.max_wait = std::chrono::milliseconds(1500);
  spec.rules = {{.name = "a",
                 .match = {{"method", {"POST", "PUT"}}, Present("user"), Not({"path", {"/x"}})},
                 .key = {"user", FirstOf({Hashed("api_key"), "ip"})},
                 .tier_limit = "r",
                 .cost = CostSpec{.attribute = "header.x-cost", .max = 50},
                 .block = BlockSpec{.denials = 10,
                                    .within = std::chrono::minutes(1),
                                    .duration = std::chrono::minutes(10),
                                    .growing = 2,
                                    .up_to = std::chrono::days(1)},
                 .overrides = {{{{"", "ann"}}, "5/s"}}}};
  EXPECT_EQ(ToYaml(spec), R"(identity:
  tier: { header: x-tier, default: free }
max_wait: 1500ms
memory: { cap: 1073741824 }
allow:
  - { path: /healthz }
tiers:
  free: { r: 10/min }
rules:
  - name: a
    match: { method: [POST, PUT], user: present, path: { not: /x } }
    key: [user, { first_of: [{ api_key: { hash: true } }, ip] }]
    limit: { tier: r }
    cost: { header: x-cost, max: 50 }
    block: { after: 10 denials in 1min, for: 10min, growing: 2x up to 1day }
    overrides:
      ann: 5/s
)");
}

TEST(ToYaml, GivesASecondTestOfAnAttributeAMatchOfItsOwn) {
  PolicySpec spec;
  spec.rules = {{.name = "x",
                 .match = {{"path", {"/a/**"}}, Not({"path", {"/a/b"}})},
                 .key = {"ip"},
                 .limit = "5/s"}};
  std::string why_not;
  const std::optional<PolicySpec> read = ReadBack(spec, why_not);
  ASSERT_TRUE(read.has_value()) << why_not;
  Match expected{{"path", {"/a/**"}}};
  expected.all = {Match{Not({"path", {"/a/b"}})}};
  EXPECT_EQ(read->rules.at(0).match, expected);
}

TEST(ToYaml, WritesKeysThatAreTooLongForAMapAsRows) {
  PolicySpec spec;
  spec.rules = {{.name = "x",
                 .key = {"user"},
                 .limit = "5/s",
                 .overrides = {{{{"", std::string(5000, 'a')}}, "6/s"}, {{{"", "b"}}, "7/s"}}}};
  std::string why_not;
  EXPECT_EQ(ReadBack(spec, why_not), spec) << why_not;
}

TEST(ToYaml, OfAPolicyThatIsAcceptedMakesTheSamePolicy) {
  // As deep as matches may be, with a list on every level.
  Match match{Not({"path", {"/a", "/b"}})};
  for (int depth = 2; depth <= kMaxMatchDepth; ++depth) {
    Match outer{{"user", {"u" + std::to_string(depth)}}};
    outer.any = {match, Match{{"method", {"GET"}}}};
    match = outer;
  }
  PolicySpec spec;
  spec.rules = {{.name = "x", .match = match, .key = {"ip"}, .limit = "5/s"}};
  ASSERT_TRUE(Policy::Make(spec).policy.has_value());
  const PolicyReport read = Policy::Parse(ToYaml(spec));
  ASSERT_TRUE(read.policy.has_value()) << read.problems.at(0).ToString();
  EXPECT_EQ(read.policy->spec(), spec);
}

}  // namespace
}  // namespace weir
