#include "policy/yaml_format.h"

#include <ctime>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::HasSubstr;

std::string Formatted(std::string_view text) {
  const FormattedYaml formatted = FormatYaml(text);
  if (!formatted.text) return "refused: " + formatted.problems.at(0).message;
  EXPECT_TRUE(formatted.problems.empty());
  const FormattedYaml again = FormatYaml(*formatted.text);
  EXPECT_EQ(again.text.value_or("refused"), *formatted.text) << "formatting again changes it";
  return *formatted.text;
}

TEST(YamlFormat, IndentsByTwoAndListsBelowTheirKeys) {
  EXPECT_EQ(Formatted("a:\n    b:   1\n    c :  2\nd:\n- x\n-   k: v\n    l: w\n- - y\n  - z\n"),
            "a:\n  b: 1\n  c: 2\nd:\n  - x\n  - k: v\n    l: w\n  - - y\n    - z\n");
  EXPECT_EQ(Formatted("  - a\n  - b"), "- a\n- b\n");
}

TEST(YamlFormat, KeepsTheOrderOfKeysAndTheWayScalarsAreWritten) {
  EXPECT_EQ(Formatted("b: 'x'\na: \"y\"\n\"c\": ~\nd: null\ne:\nf: 007\n"),
            "b: 'x'\na: \"y\"\n\"c\": ~\nd: null\ne:\nf: 007\n");
}

TEST(YamlFormat, KeepsOneBlankLineBetweenEntriesAndNoneAround) {
  EXPECT_EQ(Formatted("\n\na: 1\n\n\n\nb:\n\n  c: 1\n  \n  d: 2\n\n\n"),
            "a: 1\n\nb:\n  c: 1\n\n  d: 2\n");
}

TEST(YamlFormat, PutsCommentsAtTheLevelOfWhatTheyPrecede) {
  EXPECT_EQ(Formatted("# head\n\n   # of a\na:\n # of b\n    b: 1\n# of c\n    c: 2\n"),
            "# head\n\n# of a\na:\n  # of b\n  b: 1\n  # of c\n  c: 2\n");
}

TEST(YamlFormat, LeavesCommentsAtTheEndOfTheBlockTheyAreIndentedFor) {
  EXPECT_EQ(Formatted("a:\n    - b: 1\n      # of the item\n\n    # of the list\n# of d\nd: 1\n"),
            "a:\n  - b: 1\n    # of the item\n\n  # of the list\n# of d\nd: 1\n");
  EXPECT_EQ(Formatted("a:\n   # - b\n   # - c\nd:\n   - e\n   # - f\n"),
            "a:\n  # - b\n  # - c\nd:\n  - e\n  # - f\n");
}

TEST(YamlFormat, PutsTwoBlanksBeforeATrailingComment) {
  EXPECT_EQ(Formatted("a: 1 # x\nb: 'y#'        #z\nc: 1#2\n"), "a: 1  # x\nb: 'y#'  #z\nc: 1#2\n");
  EXPECT_EQ(Formatted("a:   # x\n   b: 1\n-c: [1]# y\n"), "a:  # x\n  b: 1\n-c: [1]  # y\n");
}

TEST(YamlFormat, KeepsNeighbouringCommentsInOneColumn) {
  EXPECT_EQ(Formatted("a: 1        # x\nlonger: 2   # y\nc: 3   # z\n"),
            "a: 1       # x\nlonger: 2  # y\nc: 3  # z\n");
  const std::string wide(97, 'x');
  EXPECT_EQ(Formatted("a: 1" + std::string(100, ' ') + "# x\nb: " + wide + "    # y\n"),
            "a: 1  # x\nb: " + wide + "  # y\n");
  EXPECT_EQ(Formatted("\xC3\xA4: 1   # x\nbb: 1  # y\n"), "\xC3\xA4: 1   # x\nbb: 1  # y\n");
}

TEST(YamlFormat, KeepsBracketsWithOneBlankInBracesAndNoneInLists) {
  EXPECT_EQ(Formatted("a: {b:  1,c: [ 2,3 , {d: e}]}\nf: { }\ng: [ ]\nh: {\"i\":1, j}\n"),
            "a: { b: 1, c: [2, 3, { d: e }] }\nf: {}\ng: []\nh: { \"i\": 1, j }\n");
  EXPECT_EQ(Formatted("a: [1,\n  2,\n]\nb: [c: d]\n"), "a: [1, 2]\nb: [c: d]\n");
}

TEST(YamlFormat, WritesBracketsThatDoNotFitAsBlocks) {
  const std::string forty(40, 'x');
  EXPECT_EQ(Formatted("a: { b: " + forty + ", c: [1, 2], d: " + forty + " }  # y\n"),
            "a:  # y\n  b: " + forty + "\n  c: [1, 2]\n  d: " + forty + "\n");
  EXPECT_EQ(Formatted("- { b: " + forty + ", c: {}, d: " + forty + " } # y\n"),
            "# y\n- b: " + forty + "\n  c: {}\n  d: " + forty + "\n");
  const std::string fits = "a: [" + std::string(95, 'x') + "]";
  ASSERT_EQ(fits.size(), 100U);
  EXPECT_EQ(Formatted(fits), fits + "\n");
  EXPECT_EQ(Formatted("b" + fits), "ba:\n  - " + std::string(95, 'x') + "\n");
}

TEST(YamlFormat, WritesBracketsWithCommentsWithinAsBlocks) {
  EXPECT_EQ(Formatted("a: [ # head\n  1,    # one\n  # two\n  2\n  # end\n] # tail\n"),
            "a:  # head\n  - 1  # one\n  # two\n  - 2\n  # end\n  # tail\n");
  EXPECT_EQ(Formatted("a: [ # nothing\n]\n"), "# nothing\na: []\n");
}

TEST(YamlFormat, KeepsBlockScalars) {
  EXPECT_EQ(Formatted("a: |   # why\n      one\n        # two\n\n      three\n\n\nb: >-\n x\n y\n"),
            "a: |  # why\n  one\n    # two\n\n  three\n\nb: >-\n  x\n  y\n");
  EXPECT_EQ(Formatted("- a: |+4\n        x\n\n\n- b"), "- a: |+2\n      x\n\n\n- b\n");
  EXPECT_EQ(Formatted("a: |\n  x"), "a: |-\n  x\n");
}

TEST(YamlFormat, KeepsTheLinesOfLongScalars) {
  EXPECT_EQ(Formatted("a: one\n   two\n\n       three # x\nb: \"one\\\n      two\"\n"),
            "a: one\n  two\n\n  three  # x\nb: \"one\\\n  two\"\n");
}

TEST(YamlFormat, MovesAValueUpToItsKeyAndItsCommentsBeforeIt) {
  EXPECT_EQ(Formatted("a: # x\n  # y\n  b\nc: # z\n   [d] # w\n-e:\n   f\n"),
            "# y\na: b  # x\n# z\nc: [d]  # w\n-e: f\n");
  EXPECT_EQ(Formatted("- # x\n  # y\n  a: 1\n-\n  - b\n"), "# x\n# y\n- a: 1\n- - b\n");
}

TEST(YamlFormat, KeepsAnchorsAndAliases) {
  EXPECT_EQ(Formatted("a:  &x  1\nb: &y\n      c: *x\nd: [ *x, &z {e: f} ]\n"
                      "g:\n- &w\n   h: *z\n- *w\n"),
            "a: &x 1\nb: &y\n  c: *x\nd: [*x, &z { e: f }]\ng:\n  - &w\n    h: *z\n  - *w\n");
}

TEST(YamlFormat, KeepsTheMarkOfADocumentAndEndsLinesInOneWay) {
  EXPECT_EQ(Formatted("\xEF\xBB\xBF# x\r\n--- # y\r\n\r\na:   1\r\n"), "# x\n---  # y\na: 1\n");
}

TEST(YamlFormat, FormatsDocumentsThatAreNoMaps) {
  EXPECT_EQ(Formatted("# x\n  text # y"), "# x\ntext  # y\n");
  EXPECT_EQ(Formatted("[ a,b ]"), "[a, b]\n");
  EXPECT_EQ(Formatted("{ a: b # x\n}"), "a: b  # x\n");
}

TEST(YamlFormat, SaysWhatItDoesNotHandle) {
  EXPECT_THAT(Formatted("? a\n: b\n"), HasSubstr("key with \"?\""));
  EXPECT_THAT(Formatted("a: 1\n? b\n: c\n"), HasSubstr("key with \"?\""));
  EXPECT_THAT(Formatted("{? a : b}\n"), HasSubstr("key with \"?\""));
  EXPECT_THAT(Formatted("a: 1\n...\n"), HasSubstr("\"...\""));
  EXPECT_THAT(Formatted("[, a]\n"), HasSubstr("empty item"));
  EXPECT_THAT(Formatted("- [-, " + std::string(100, 'x') + "]\n"), HasSubstr("without changing"));
}

TEST(YamlFormat, GivesTheProblemsOfATextThatIsNoDocument) {
  const FormattedYaml formatted = FormatYaml("a: 1\na: !x 2\n");
  EXPECT_FALSE(formatted.text.has_value());
  ASSERT_EQ(formatted.problems.size(), 2U);
  EXPECT_EQ(formatted.problems[0].kind, YamlProblem::Kind::kDuplicateKey);
  EXPECT_EQ(formatted.problems[1].kind, YamlProblem::Kind::kTag);
}

TEST(YamlFormat, TakesTimeInProportion) {
  std::string text = "rules:\n";
  for (int i = 0; i < 3000; ++i) {
    text += "- name: r" + std::to_string(i) + "   # c\n  match: {path: /x, method: [GET,PUT]}\n\n";
  }
  std::string line = "a: [";
  for (int i = 0; i < 50'000; ++i) line += "x, ";
  const std::clock_t start = std::clock();
  EXPECT_THAT(Formatted(text), HasSubstr("  - name: r2999  # c\n"));
  EXPECT_THAT(Formatted(line + "]"), HasSubstr("a:\n  - x\n"));
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10);
}

constexpr std::string_view kUntidyPolicy = R"(# weir.yaml
store: memory                       # redis://127.0.0.1:6379  rediss://…  redis+cluster://a,b,c  redis+sentinel://…/name  or a list of shards
listen: { http: 127.0.0.1:8080, resp: 127.0.0.1:6380, grpc: 127.0.0.1:8081 }    # also unix:/path, with tls: and token:
trusted_proxies: [127.0.0.0/8]      # who may set forwarding and identity headers
identity:                           # how forward-auth and middleware find who is asking
  user:    { header: x-user-id }    # believed only from trusted_proxies
  api_key: { header: x-api-key, from: anyone, hash: true }
  tier:    { header: x-tier, default: free }
headers: [x-ratelimit, ratelimit]   # default: both; X-RateLimit-Reset is epoch seconds unless reset: delta
on_store_failure: static            # default; open | closed | static, also per rule

tiers:
  free: { requests: 10/min burst 50, daily: 1000/day }
  pro:  { requests: 100/s burst 200, daily: 1M/day }

rules:
  - name: per-ip                    # layer 1: always
    key: ip
    limit: 200/min
    algorithm: sliding_window
  - name: credentials               # layer 3: sensitive endpoints
    match: { path: [/auth/login, /auth/register, /auth/reset-password], method: POST }
    key: ip
    limit: 5/min
    message: Too many authentication attempts
  - name: write
    match: { method: [POST, PUT, PATCH, DELETE] }
    key: { first_of: [api_key, user, ip] }
    limit: 10/min
    mode: shadow                    # enforce (default) | shadow | off
    # enforce_percent: 10           # of keys, stable per key and equal on all nodes
)";

constexpr std::string_view kFormattedPolicy = R"(# weir.yaml
store: memory  # redis://127.0.0.1:6379  rediss://…  redis+cluster://a,b,c  redis+sentinel://…/name  or a list of shards
listen: { http: 127.0.0.1:8080, resp: 127.0.0.1:6380, grpc: 127.0.0.1:8081 }  # also unix:/path, with tls: and token:
trusted_proxies: [127.0.0.0/8]  # who may set forwarding and identity headers
identity:                       # how forward-auth and middleware find who is asking
  user: { header: x-user-id }   # believed only from trusted_proxies
  api_key: { header: x-api-key, from: anyone, hash: true }
  tier: { header: x-tier, default: free }
headers: [x-ratelimit, ratelimit]  # default: both; X-RateLimit-Reset is epoch seconds unless reset: delta
on_store_failure: static           # default; open | closed | static, also per rule

tiers:
  free: { requests: 10/min burst 50, daily: 1000/day }
  pro: { requests: 100/s burst 200, daily: 1M/day }

rules:
  - name: per-ip  # layer 1: always
    key: ip
    limit: 200/min
    algorithm: sliding_window
  - name: credentials  # layer 3: sensitive endpoints
    match: { path: [/auth/login, /auth/register, /auth/reset-password], method: POST }
    key: ip
    limit: 5/min
    message: Too many authentication attempts
  - name: write
    match: { method: [POST, PUT, PATCH, DELETE] }
    key: { first_of: [api_key, user, ip] }
    limit: 10/min
    mode: shadow  # enforce (default) | shadow | off
    # enforce_percent: 10           # of keys, stable per key and equal on all nodes
)";

TEST(YamlFormat, FormatsAPolicy) { EXPECT_EQ(Formatted(kUntidyPolicy), kFormattedPolicy); }

}  // namespace
}  // namespace weir
