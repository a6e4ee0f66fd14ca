// Advice: a policy that gets it, the nearest one that does not, and that it is never more than
// advice.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/policy.h>

#include "policy/problems.h"

namespace weir {
namespace {

using testing::HasSubstr;

struct Advised {
  std::string_view code;
  int line;
  std::string_view says;
  std::string_view with;     // Gets it,
  std::string_view without;  // does not.
};

void PrintTo(const Advised& advised, std::ostream* out) {
  *out << advised.code << " " << advised.with;
}

// Rules on a line each, after what says who is asking.
#define IDENTITY "identity: { user: { header: x-user }, api_key: { header: x-key, hash: true } }\n"
#define RULES "rules:\n"
#define HOPS "client_ip: { hops: 1 }\n" RULES "- { name: x, key: ip, limit: 5/s }"

const Advised kAdvised[] = {
    // A fixed window where passwords are guessed.
    {"W101", 2, "lets 10 through around a boundary, not 5",
     RULES
     "- { name: x, match: { path: /auth/login }, key: ip, limit: 5/min, algorithm: fixed_window }",
     RULES
     "- { name: x, match: { path: /authors }, key: ip, limit: 5/min, algorithm: fixed_window }"},
    {"W101", 2, "/reset-password",
     RULES "- { name: x, match: { any: [{ path: [/a, /reset-password] }, { path: /b }] }, key: ip, "
           "limit: 5/min, algorithm: fixed_window }",
     RULES "- { name: x, match: { not: { path: /reset-password } }, key: ip, limit: 5/min, "
           "algorithm: fixed_window }"},
    {"W101", 2, "/Sign-In",
     RULES
     "- { name: x, match: { path: /Sign-In }, key: ip, limit: 5/min, algorithm: fixed_window }",
     RULES
     "- { name: x, match: { path: /Sign-In }, key: ip, limit: 5/min, algorithm: sliding_log }"},
    // Those who are logged in, by address.
    {"W102", 3, "use key: user",
     IDENTITY RULES "- { name: x, match: { user: present }, key: ip, limit: 5/s }",
     IDENTITY RULES "- { name: x, match: { user: absent }, key: ip, limit: 5/s }"},
    {"W102", 3, "api_key",
     IDENTITY RULES
     "- { name: x, match: { any: [{ api_key: a }, { api_key: b }] }, key: ip, limit: 5/s }",
     IDENTITY RULES "- { name: x, match: { api_key: present }, key: [api_key, ip], limit: 5/s }"},
    // Long logs.
    {"W103", 2, "a log of 10000 takes about 183 kB",
     RULES "- { name: x, key: ip, limit: 10k/h, algorithm: sliding_log }",
     RULES "- { name: x, key: ip, limit: 999/h, algorithm: sliding_log }"},
    {"W103", 2, "strict: true",
     RULES
     "- { name: x, key: ip, limit: 5/h, algorithm: sliding_log, overrides: { 10.0.0.1: 2k/h } }",
     RULES "- { name: x, key: ip, limit: 10k/h, algorithm: sliding_window }"},
    // A cost that the client can choose.
    {"W104", 2, "a cost of 1",
     RULES "- { name: x, key: ip, limit: 5/s, cost: { header: x-cost, from: anyone } }",
     RULES "- { name: x, key: ip, limit: 5/s, cost: { header: x-cost, from: trusted } }"},
    {"W104", 2, "a cost of 0",
     RULES "- { name: x, key: ip, limit: 5/s, cost: { query: c, from: anyone, min: 0 } }",
     RULES
     "- { name: x, key: ip, limit: 50/s, cost: { query: c, from: anyone, min: 3, default: 3 } }"},
    // Keys that everybody can change.
    {"W105", 2, "a client can change header.x-device",
     RULES "- { name: x, match: { header.x-device: present }, key: header.x-device, limit: 5/s }",
     RULES "- { name: x, match: { header.X-Device: [a, b] }, key: header.x-device, limit: 5/s }"},
    {"W105", 2, "path", RULES "- { name: x, key: [ip, path], limit: 5/s }",
     RULES "- { name: x, key: [ip, path], limit: 5/s }\n- { name: y, key: ip, limit: 50/s }"},
    {"W105", 2, "path.id",
     RULES "- { name: x, match: { path: '/orders/{id}' }, key: path.id, limit: 5/s }\n"
           "- { name: y, key: ip, limit: 50/s, mode: shadow }",
     RULES "- { name: x, match: { path: '/orders/{id}' }, key: path.id, limit: 5/s }\n"
           "- { name: y, key: ip, limit: 50/s }"},
    // Keys that some requests do not have.
    {"W106", 3, "match: { user: present }", IDENTITY RULES "- { name: x, key: user, limit: 5/s }",
     IDENTITY RULES "- { name: x, match: { user: present }, key: user, limit: 5/s }"},
    {"W106", 3, "requests without user",
     IDENTITY RULES "- { name: x, match: { user: { not: ann } }, key: user, limit: 5/s }",
     IDENTITY RULES "- { name: x, match: { user: ann }, key: user, limit: 5/s }"},
    {"W106", 3, "add ip at its end",
     IDENTITY RULES "- { name: x, key: { first_of: [user, org] }, limit: 5/s }",
     IDENTITY RULES "- { name: x, key: { first_of: [user, ip] }, limit: 5/s }"},
    {"W106", 3, "unidentified: skip", IDENTITY RULES "- { name: x, key: user, limit: 5/s }",
     IDENTITY RULES "- { name: x, key: user, limit: 5/s, unidentified: skip }"},
    {"W106", 2, "paths without path.id",
     RULES
     "- { name: x, match: { path: ['/orders/{id}', /orders] }, key: [ip, path.id], limit: 5/s }\n"
     "- { name: y, key: ip, limit: 50/s }",
     RULES "- { name: x, match: { path: '/orders/{id}' }, key: [ip, path.id], limit: 5/s }\n"
           "- { name: y, key: ip, limit: 50/s }"},
    {"W106", 3, "tier",
     "identity: { tier: { header: x-tier } }\n" RULES "- { name: x, key: tier, limit: 5/s }",
     "identity: { tier: { header: x-tier, default: a } }\n" RULES
     "- { name: x, key: tier, limit: 5/s }"},
    // Rules that never decide.
    {"W107", 3, "\"tight\" applies to the same requests",
     RULES "- { name: tight, key: ip, limit: 5/s burst 5 }\n"
           "- { name: wide, match: { method: GET }, key: ip, limit: 6/s burst 5 }",
     RULES "- { name: tight, key: ip, limit: 5/s burst 5 }\n"
           "- { name: wide, match: { method: GET }, key: ip, limit: 4/s burst 9 }"},
    {"W107", 2, "never decides",
     RULES "- { name: wide, key: ip, limit: 6/s }\n- { name: tight, key: ip, limit: 5/s }",
     RULES "- { name: wide, key: ip, limit: 6/s }\n"
           "- { name: tight, match: { method: GET }, key: ip, limit: 5/s }"},
    {"W107", 3, "\"b\" never decides: \"a\"",
     RULES "- { name: a, key: ip, limit: 5/s }\n- { name: b, key: ip, limit: 5/s }",
     RULES "- { name: a, key: ip, limit: 5/s }\n- { name: b, key: global, limit: 5/s }"},
    {"W107", 3, "never decides",
     RULES "- { name: a, key: ip, limit: 5/min, algorithm: sliding_window }\n"
           "- { name: b, key: ip, limit: 9/min, algorithm: sliding_window }",
     RULES "- { name: a, key: ip, limit: 5/min, algorithm: sliding_window }\n"
           "- { name: b, key: ip, limit: 9/h, algorithm: sliding_window }"},
    {"W107", 3, "never decides",
     RULES "- { name: a, key: ip, limit: 5/s }\n- { name: b, key: ip, limit: 9/s }",
     RULES "- { name: a, key: ip, limit: 5/s, mode: shadow }\n- { name: b, key: ip, limit: 9/s }"},
    {"W107", 3, "never decides",
     RULES "- { name: a, key: ip, limit: 5/s }\n- { name: b, key: ip, limit: 9/s }",
     RULES "- { name: a, key: ip, limit: 5/s, on_store_failure: open }\n"
           "- { name: b, key: ip, limit: 9/s }"},
    // Nothing to do.
    {"W108", 1, "write some", "rules: []", RULES "- { name: x, key: ip, limit: 5/s }"},
    {"W108", 1, "all rules are off", RULES "- { name: x, key: ip, limit: 5/s, mode: off }",
     RULES "- { name: x, key: ip, limit: 5/s, mode: shadow }"},
    // Trust.
    {"W109", 1, "name your proxies",
     "trusted_proxies: 0.0.0.0/0\n" RULES "- { name: x, key: ip, limit: 5/s }",
     "trusted_proxies: 10.0.0.0/8\n" RULES "- { name: x, key: ip, limit: 5/s }"},
    // Counted proxies: whoever connects is one.
    {"W109", 2, "counts as your last proxy", "listen: { http: 0.0.0.0:80 }\n" HOPS,
     "listen: { http: 127.0.0.1:80 }\n" HOPS},
    {"W109", 2, "counts as your last proxy", "listen: { http: '[::]:80' }\n" HOPS,
     "listen: { http: '[::1]:80' }\n" HOPS},
    {"W109", 2, "counts as your last proxy", "listen: { http: 10.0.0.1:80 }\n" HOPS,
     "listen: { http: unix:/run/weir.sock }\n" HOPS},
    {"W109", 2, "counts as your last proxy", "listen: { http: weir.internal:80 }\n" HOPS,
     "listen: { http: localhost:80 }\n" HOPS},
    {"W109", 2, "counts as your last proxy",
     "listen: { http: 0.0.0.0:80, resp: 127.0.0.1:81 }\n" HOPS,
     "listen: { resp: 0.0.0.0:80, grpc: 0.0.0.0:81 }\n" HOPS},
    {"W109", 2, "counts as your last proxy", "listen: { http: { address: 0.0.0.0:80 } }\n" HOPS,
     "listen: { http: { address: 0.0.0.0:80, token: env:T } }\n" HOPS},
    {"W109", 2, "counts as your last proxy",
     "listen: { http: { address: 0.0.0.0:80, tls: { certificate: c, key: k } } }\n" HOPS,
     "listen: { http: { address: 0.0.0.0:80, tls: { certificate: c, key: k, client_ca: a } } "
     "}\n" HOPS},
    {"W109", 2, "counts as your last proxy", "listen: { http: '[::ffff:128.0.0.1]:80' }\n" HOPS,
     "listen: { http: '[::ffff:127.0.0.9]:80' }\n" HOPS},
    {"W109", 2, "counts as your last proxy", "listen: { http: 0.0.0.0:80 }\n" HOPS, "\n" HOPS},
    {"W111", 1, "name its own user",
     "identity: { user: { header: x, from: anyone } }\n" RULES "- { name: x, key: ip, limit: 5/s }",
     "identity: { api_key: { header: x, from: anyone } }\n" RULES
     "- { name: x, key: ip, limit: 5/s }"},
    // Secrets.
    {"W112", 2, "{ api_key: { hash: true } }",
     RULES "- { name: x, match: { api_key: present }, key: api_key, limit: 5/s }",
     RULES
     "- { name: x, match: { api_key: present }, key: { api_key: { hash: true } }, limit: 5/s }"},
    {"W112", 3, "header.authorization",
     RULES "- { name: y, key: ip, limit: 50/s }\n"
           "- { name: x, key: { first_of: [header.Authorization, ip] }, limit: 5/s }",
     RULES "- { name: y, key: ip, limit: 50/s }\n"
           "- { name: x, key: { first_of: [{ header.Authorization: { hash: true } }, ip] }, limit: "
           "5/s }"},
    // Settings for nothing.
    {"W110", 2, "no rule uses \"daily\"",
     "identity: { tier: { default: a } }\ntiers: { a: { r: 5/s, daily: 5/day } }\n" RULES
     "- { name: x, key: ip, limit: { tier: r } }",
     "identity: { tier: { default: a } }\ntiers: { a: { r: 5/s } }\n" RULES
     "- { name: x, key: ip, limit: { tier: r } }"},
    {"W113", 2, "bans nobody",
     RULES
     "- { name: x, key: ip, limit: 5/s, mode: shadow, block: { after: 5 denials in 1s, for: 1s } }",
     RULES "- { name: x, key: ip, limit: 5/s, block: { after: 5 denials in 1s, for: 1s } }"},
    {"W113", 2, "enforced for nobody",
     RULES "- { name: x, key: ip, limit: 5/s, mode: shadow, enforce_percent: 10 }",
     RULES "- { name: x, key: ip, limit: 5/s, enforce_percent: 10 }"},
    {"W113", 2, "align: calendar",
     RULES "- { name: x, key: ip, limit: 5/day, algorithm: fixed_window, zone: Europe/Berlin }",
     RULES "- { name: x, key: ip, limit: 5/day, algorithm: fixed_window, align: calendar, zone: "
           "Europe/Berlin }"},
    {"W113", 2, "align: calendar",
     RULES "- { name: x, key: ip, limit: 5/week, algorithm: fixed_window, week_start: sunday }",
     RULES "- { name: x, key: ip, limit: 5/week, algorithm: fixed_window, align: calendar, "
           "week_start: sunday }"},
    {"W113", 2, "the store keeps the state",
     "store: redis://127.0.0.1:6379\nmemory: { snapshot: state }\n" RULES
     "- { name: x, key: ip, limit: 5/s }",
     "store: memory\nmemory: { snapshot: state }\n" RULES "- { name: x, key: ip, limit: 5/s }"},
};

#undef IDENTITY
#undef RULES
#undef HOPS

class Advice : public testing::TestWithParam<Advised> {};

TEST_P(Advice, IsGivenWhereItApplies) {
  const Advised& advised = GetParam();
  const PolicyReport report = Policy::Parse(advised.with, "weir.yaml");
  EXPECT_TRUE(report.policy.has_value()) << "advice must not keep a policy from loading";
  bool found = false;
  for (const Problem& problem : report.problems) {
    EXPECT_EQ(problem.severity, Severity::kAdvice) << problem.ToString();
    if (problem.code != advised.code || problem.line != advised.line) continue;
    found = true;
    EXPECT_THAT(problem.message, HasSubstr(advised.says));
  }
  EXPECT_TRUE(found) << testing::PrintToString(report.problems.size()) << " problems\n"
                     << (report.problems.empty() ? "" : report.problems.front().ToString());
}

TEST_P(Advice, IsNotGivenNearby) {
  const Advised& advised = GetParam();
  const PolicyReport report = Policy::Parse(advised.without, "weir.yaml");
  EXPECT_TRUE(report.policy.has_value());
  for (const Problem& problem : report.problems) {
    EXPECT_NE(problem.code, advised.code) << problem.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Advice, testing::ValuesIn(kAdvised));

TEST(AdviceTable, ShowsEveryCode) {
  std::set<std::string> shown;
  for (const Advised& advised : kAdvised) shown.emplace(advised.code);
  for (const CodeMeaning& code : AllProblemCodes()) {
    const std::string name = NameOf(code.code);
    if (!name.starts_with('W')) continue;
    EXPECT_TRUE(shown.contains(name)) << name;
  }
}

std::filesystem::path Root() {
  const std::string here = __FILE__;
  return here.substr(0, here.find("src/policy/advice_test.cc"));
}

TEST(Examples, LoadWithoutAWord) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Root() / "examples/policies")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const PolicyReport report = Policy::Load(entry.path().string());
    EXPECT_TRUE(report.policy.has_value()) << entry.path();
    for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  }
  EXPECT_GE(files, 9);
}

TEST(Examples, CutOffAnywhereNeverBreakTheReader) {
  std::ifstream file(Root() / "examples/policies/shop.yaml");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  ASSERT_GT(text.size(), 1000U);
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const PolicyReport report = Policy::Parse(text.substr(0, length));
    bool errors = false;
    for (const Problem& problem : report.problems) {
      errors = errors || problem.severity == Severity::kError;
      EXPECT_FALSE(problem.message.empty());
    }
    EXPECT_EQ(report.policy.has_value(), !errors) << length;
  }
}

}  // namespace
}  // namespace weir
