// What is said about files that are wrong: the code, the place, and what to do.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/policy.h>

#include "policy/problems.h"

namespace weir {
namespace {

using testing::HasSubstr;

struct Wrong {
  std::string_view yaml;
  std::string_view code;
  int line;
  int column;
  std::string_view says;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.code << " " << wrong.yaml; }

// --- Syntax ---

const Wrong kSyntax[] = {
    {"rules: [", "E001", 1, 9, "missing"},
    {"rules:\n\t- name: x", "E001", 2, 2, "tab"},
    {"rules:\n  - name:x", "E011", 2, 5, "expected a map"},
    {"", "E002", 1, 1, ""},
    {"# only a comment\n", "E002", 1, 1, ""},
    {"rules: []\n---\nrules: []", "E003", 2, 1, "one document"},
    {"rules: !list []", "E004", 1, 8, "leave the tag out"},
    {"? [a, b]\n: c", "E005", 1, 3, "key"},
    {"<<: { store: memory }", "E005", 1, 1, "write the keys out"},
    {"store: memory\nstore: memory", "E006", 2, 1, "line 1"},
    {"rules: *nowhere", "E007", 1, 8, "anchor"},
    {"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "E008", 1, 35,
     "flatter"},
    {"store: \"a\x01\"", "E009", 1, 10, "escape"},
    {"store: \xff", "E009", 1, 8, "UTF-8"},
};

// --- Keys that are not known, on every level ---

const Wrong kUnknown[] = {
    {"rule: []", "E010", 1, 1, "did you mean rules?"},
    {"RULES: []", "E010", 1, 1, "did you mean rules?"},
    {"nonsense: 1", "E010", 1, 1, "allowed are store, listen"},
    {"listen: { htp: 127.0.0.1:80 }", "E010", 1, 11, "did you mean http?"},
    {"listen: { http: { adress: 127.0.0.1:80 } }", "E010", 1, 19, "did you mean address?"},
    {"listen: { http: { address: 127.0.0.1:80, tls: { cert: a } } }", "E010", 1, 49,
     "allowed are certificate, key and client_ca"},
    {"identity: { user: { headr: x } }", "E010", 1, 21, "did you mean header?"},
    {"client_ip: { hop: 1 }", "E010", 1, 14, "did you mean hops?"},
    {"redis: { time_out: 1s }", "E010", 1, 10, "did you mean timeout?"},
    {"limits: { conections: 1 }", "E010", 1, 11, "did you mean connections?"},
    {"memory: { caps: 1GiB }", "E010", 1, 11, "did you mean cap?"},
    {"rules: [{ name: x, key: ip, limit: 5/s, mesage: no }]", "E010", 1, 41,
     "did you mean message?"},
    {"rules: [{ name: x, key: { ip: { v7: 1 } }, limit: 5/s }]", "E010", 1, 33, "did you mean v4?"},
    {"rules: [{ name: x, key: ip, limit: { teir: a } }]", "E010", 1, 38, "did you mean tier?"},
    {"rules: [{ name: x, key: ip, limit: 5/s, cost: { headers: a } }]", "E010", 1, 49,
     "did you mean header?"},
    {"rules: [{ name: x, key: ip, limit: 5/s, block: { afterr: 1 denial in 1s, for: 1s } }]",
     "E010", 1, 50, "did you mean after?"},
};

// --- Values of the wrong kind ---

const Wrong kValues[] = {
    {"[]", "E011", 1, 1, "found a list, expected a map"},
    {"just text", "E011", 1, 1, "expected a map"},
    {"rules: {}", "E011", 1, 1, "expected a list of rules"},
    {"rules: 5", "E011", 1, 8, "expected a list of rules"},
    {"rules: [5]", "E011", 1, 9, "found \"5\", expected a map"},
    {"store: { a: b }", "E011", 1, 1, "expected a single value"},
    {"trusted_proxies:", "E011", 1, 1, "found nothing"},
    {"allow: 5", "E011", 1, 8, "expected a map"},
    {"identity: { user: x-user }", "E011", 1, 19, "expected a map"},
    {"rules: [{ name: [a], key: ip, limit: 5/s }]", "E011", 1, 11, "expected a single value"},
    {"rules: [{ name: x, key: ip, limit: [5/s] }]", "E011", 1, 29, "expected a single value"},
    {"rules: [{ name: x, key: ip, limit: ~ }]", "E011", 1, 29, "found nothing"},
    {"rules: [{ name: x, key: { ip: {}, user: {} }, limit: 5/s }]", "E011", 1, 20, "a list"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { user: [present] } }]", "E011", 1, 57,
     "put it into quotes"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { user: [] } }]", "E011", 1, 50, "write one"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { user: '' } }]", "E011", 1, 56, "absent"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { user: { is: a } } }]", "E011", 1, 50,
     "{ not: ... }"},
    {"fleet_size: many", "E012", 1, 13, "write 1 to 1000000"},
    {"fleet_size: 1.5", "E012", 1, 13, "is no whole number"},
    {"rules: [{ name: x, key: ip, limit: 5/s, strict: yes }]", "E013", 1, 49, "true or false"},
    {"rules: [{ name: x, key: ip, limit: 5/s, strict: 'true' }]", "E013", 1, 49, "without quotes"},
    {"max_wait: 5", "E014", 1, 11, "200ms or 10min"},
    {"max_wait: 5 s", "E014", 1, 11, "is no length"},
    {"queue_hold: 1sec", "E014", 1, 13, "is no length"},
    {"memory: { cap: 1gb }", "E015", 1, 16, "KiB, MiB or GiB"},
    {"memory: { cap: 1.5GiB }", "E015", 1, 16, "is no size"},
    {"on_store_failure: panic", "E016", 1, 19, "static, open and closed"},
    {"headers: [x-rate]", "E016", 1, 11, "x-ratelimit and ratelimit"},
    {"rules: [{ name: x, key: ip, limit: 5/s, week_start: Monday }]", "E016", 1, 53, "monday"},
    {"rules: [{ name: x, key: ip, limit: 5/s, mode: disabled }]", "E016", 1, 47, "shadow and off"},
    {"rules: [{ name: x, key: ip, limit: 5/s, algorithm: gcra }]", "E016", 1, 52, "token_bucket"},
    {"rules: [{ name: x, limit: 5/s }]", "E018", 1, 9, "write key: ip, user, ... or global"},
    {"rules: [{ key: ip, limit: 5/s }]", "E018", 1, 9, "write name: ..."},
    {"rules: [{ name: x, key: ip }]", "E018", 1, 9, "write limit: 100/min"},
    {"rules: [{ name: x, key: ip, limit: {} }]", "E018", 1, 29, "limit: { tier: NAME }"},
    {"rules: [{ name: x, key: [], limit: 5/s }]", "E018", 1, 20, "key: global"},
    {"rules: [{ name: x, key: { first_of: [] }, limit: 5/s }]", "E018", 1, 27, "name some"},
    {"allow: {}", "E018", 1, 1, "for every request"},
    {"deny: [{ any: [{}] }]", "E018", 1, 1, "for every request"},
    {"rules: [{ name: x, key: ip, limit: 5/s, overrides: [{ key: 10.0.0.1 }] }]", "E018", 1, 53,
     "write limit"},
    // Numbers that are none of those allowed.
    {"fleet_size: -5", "E125", 1, 13, "write 1 to 1000000"},
    {"fleet_size: 99999999999999999999", "E125", 1, 13, "write 1 to 1000000"},
    {"client_ip: { hops: 0 }", "E125", 1, 20, "write 1 to 32"},
    {"max_wait: 2h", "E125", 1, 11, "write 0s to 1h"},
    {"max_wait: 9000week", "E125", 1, 11, "write 0s to 1h"},
    {"memory: { cap: 1KiB }", "E125", 1, 16, "write 2097152 to"},
    {"memory: { cap: 99999999999999999999GiB }", "E125", 1, 16, "bytes"},
    {"rules: [{ name: x, key: { ip: { v4: 33 } }, limit: 5/s }]", "E125", 1, 37, "write 1 to 32"},
};

// --- Meaning: rules ---

const Wrong kRules[] = {
    {"rules: [{ name: x, key: ip, limit: 100 }]", "E101", 1, 36, "expected \"/\" and a period"},
    {"tiers: { free: { calls: many } }\nrules: []", "E101", 1, 25, "expected a count"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { any: [] } }]", "E018", 1, 50, "empty"},
    {"rules: [{ name: x, key: ip, limit: 0/s }]", "E101", 1, 36, "deny"},
    {"rules: [{ name: x, key: ip, limit: 5/month }]", "E101", 1, 36, "align: calendar"},
    {"rules: [{ name: x, key: ip, limit: 5/s, strict: true }]", "E101", 1, 36, "sliding_window"},
    {"rules: [{ name: x, key: ip, limit: 5/day, algorithm: fixed_window, align: calendar, zone: "
     "Mars/North }]",
     "E101", 1, 36, "zone"},
    {"rules: [{ name: x, key: ip, limit: 5/s }, { name: x, key: ip, limit: 5/s }]", "E102", 1, 51,
     "rules[0]"},
    {"rules: [{ name: 'a b', key: ip, limit: 5/s }]", "E103", 1, 17, "letters, digits"},
    {"rules: [{ name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, key: ip, "
     "limit: 5/s }]",
     "E103", 1, 17, "1 to 64"},
    {"tiers: { '': { a: 5/s } }", "E103", 1, 10, "1 to 256"},
    {"rules: [{ name: x, key: usr, limit: 5/s }]", "E104", 1, 25, "there are ip, user"},
    {"rules: [{ name: x, key: [ip, global], limit: 5/s }]", "E104", 1, 30, "key: global"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { methods: GET } }]", "E104", 1, 50,
     "any, all and not"},
    {"rules: [{ name: x, key: path.id, limit: 5/s }]", "E105", 1, 25, "has {id}"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { fingerprint: a } }]", "E105", 1, 50,
     "header.user-agent"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { path.id: a } }]", "E105", 1, 50, "pattern"},
    {"rules: [{ name: x, key: { user: { v4: 24 } }, limit: 5/s }]", "E105", 1, 20, "remove them"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { path: login } }]", "E106", 1, 56, "/"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { path: [/a, /**/b/**] } }]", "E106", 1, 61,
     "**"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { ip: 10.0.0.0/99 } }]", "E107", 1, 54,
     "10.0.0.0/8"},
    {"trusted_proxies: [10.0.0.1/8]", "E107", 1, 19, "zeros behind the prefix"},
    {"trusted_proxies: [gateway]", "E107", 1, 19, "is no address"},
    {"rules: [{ name: x, key: ip, limit: 5/s, match: { method: GET, all: [{ method: POST }] } }]",
     "E108", 1, 41, "at once"},
    {"deny: [{ user: present, not: { user: present } }]", "E108", 1, 1, "no request can match"},
};

// --- Meaning: limits, overrides, costs, bans ---

#define TIER "identity: { tier: { default: a } }\n"
#define RULE "rules: [{ name: x, key: user, limit: 5/s, unidentified: skip, "

const Wrong kLimits[] = {
    {"rules: [{ name: x, key: ip, limit: { tier: a } }]", "E109", 1, 29, "write tiers"},
    {TIER "tiers: { a: { r: 5/s }, b: {} }\nrules: [{ name: x, key: ip, limit: { tier: r } }]",
     "E109", 3, 29, "the tier \"b\" has no limit called \"r\""},
    {"tiers: { a: { r: 5/s } }\nrules: [{ name: x, key: ip, limit: { tier: r } }]", "E110", 1, 1,
     "default: a"},
    {"identity: { tier: { default: z } }\n"
     "tiers: { a: { r: 5/s } }\nrules: [{ name: x, key: ip, limit: { tier: r } }]",
     "E110", 1, 13, "\"z\" is none of tiers"},
    {TIER "tiers: { a: { r: 5/s }, b: { r: 5 concurrent } }\n"
          "rules: [{ name: x, key: ip, limit: { tier: r } }]",
     "E111", 2, 33, "counts in another way"},
    {TIER "tiers: { a: { r: unlimited }, b: { r: 5/s }, c: { r: 5/min } }\n"
          "rules: [{ name: x, key: ip, limit: { tier: r }, algorithm: sliding_window }]",
     "E111", 2, 54, "of another tier"},
    {RULE "algorithm: sliding_log, overrides: { ann: 5/min } }]", "E111", 1, 105,
     "counts in another way"},
    {RULE "overrides: { ann: nonsense } }]", "E101", 1, 81, "expected"},
    {RULE "overrides: [{ org: a, limit: 5/s }] }]", "E113", 1, 75, "name user"},
    {RULE "overrides: [{ limit: 5/s }] }]", "E113", 1, 75, "name user"},
    {RULE "overrides: [{ user: a, key: b, limit: 5/s }] }]", "E113", 1, 75, "twice"},
    {"rules: [{ name: x, key: global, limit: 5/s, overrides: { a: 6/s } }]", "E113", 1, 61,
     "change the rule's limit"},
    {"rules: [{ name: x, key: ip, limit: 5/s, overrides: { 10.0.0.0/8: 6/s } }]", "E113", 1, 66,
     "not a range"},
    {"rules: [{ name: x, key: { first_of: [org, ip] }, limit: 5/s, overrides: [{ org: a, ip: "
     "10.0.0.1, limit: 6/s }] }]",
     "E113", 1, 74, "remove it"},
    {"rules: [{ name: x, key: [ip, method], limit: 5/s, overrides: { 10.0.0.1: 6/s } }]", "E113", 1,
     74, "name ip and method"},
    {"rules: [{ name: x, key: ip, limit: 5/s, overrides: { 10.0.0.1: 6/s, '::ffff:10.0.0.1': 7/s } "
     "}]",
     "E114", 1, 88, "row 1"},
    {RULE "overrides: [{ user: a, limit: 5/s }, { key: a, limit: 6/s }] }]", "E114", 1, 100,
     "remove one"},
    {RULE "overrides: customers.txt }]", "E115", 1, 74, ".csv, .jsonl or .ndjson"},
    {RULE "cost: { header: a, min: 5, max: 2, default: 3 } }]", "E116", 1, 63, "min at most max"},
    {RULE "cost: { header: a, min: 5 } }]", "E116", 1, 63, "not between"},
    {RULE "cost: { default: 5, min: 2 } }]", "E116", 1, 63, "header: x-cost"},
    {RULE "cost: { header: a, query: b } }]", "E116", 1, 89, "keep one"},
    {RULE "block: { after: often, for: 1min } }]", "E117", 1, 79, "10 denials in 1min"},
    {RULE "block: { for: 1min } }]", "E117", 1, 63, "after: write"},
    {RULE "block: { after: 1 denial in 1s } }]", "E117", 1, 63, "how long a ban lasts"},
    {RULE "block: { after: 1 denial in 1s, for: 1h, growing: 2x up to 1min } }]", "E117", 1, 63,
     "at least 1h"},
    {RULE "block: { after: 1 denial in 1s, for: 1h, growing: 1x up to 1day } }]", "E117", 1, 113,
     "2 or more"},
    {RULE "block: { after: 1 denial in 1s, for: 1s, growing: 2x up to 300day } }]", "E117", 1, 63,
     "larger factor"},
    {RULE "enforce_percent: 101 }]", "E118", 1, 80, "write 0 to 100"},
    {RULE "enforce_percent: nan }]", "E118", 1, 80, "write 0 to 100"},
    {RULE "enforce_percent: 5% }]", "E118", 1, 80, "write 0 to 100"},
    {RULE "message: \"two\\nlines\" }]", "E124", 1, 72, "on one line"},
    {RULE "match: { all: { all: { all: { all: { all: { all: { all: { all: { all: { all: { all: "
          "{ all: { user: a } } } } } } } } } } } } } }]",
     "E125", 1, 149, "flatter"},
};

#undef TIER
#undef RULE

// --- Meaning: the service ---

const Wrong kService[] = {
    {"store: mysql://x", "E119", 1, 8, "write memory, or redis://"},
    {"store: redis://", "E119", 1, 8, "is no store"},
    {"store: []", "E119", 1, 1, "write memory"},
    {"store: [memory, redis://x]", "E119", 1, 9, "only others"},
    {"store: [redis://x, redis://x]", "E119", 1, 20, "remove one"},
    {"store: [redis://x, redis://x:6379/0]", "E119", 1, 20, "remove one"},
    {"store: [redis://x, redis+cluster://y]", "E119", 1, 20, "cannot be one of several shards"},
    {"store: [redis+sentinel://x/m]\nrules: [{ name: x, limit: 2M/s, key: ip }]", "E128", 2, 27,
     "at most 1000000 a second"},
    {"store: redis://x\nrules: [{ name: x, limit: 20000/h, key: ip, algorithm: sliding_log }]",
     "E128", 2, 27, "at most 10000"},
    {"store: redis://x\nrules: [{ name: x, limit: 5/s, key: ip, overrides: { 192.0.2.1: 2M/s } }]",
     "E128", 2, 65, "lower rate"},
    {"store: redis://x\nidentity: { tier: { default: a } }\ntiers: { a: { l: 2M/s } }\n"
     "rules: [{ name: x, key: ip, limit: { tier: l } }]",
     "E128", 3, 18, "lower rate"},
    {"store: redis://x:0", "E119", 1, 8, "is no port"},
    {"store: 'redis://u:s3cret@x:y'", "E119", 1, 8, "is no port"},
    {"store: redis+sentinel://x", "E119", 1, 8, "has a name"},
    {"listen: { http: 8080 }", "E120", 1, 17, "127.0.0.1:8080"},
    {"listen: { http: 127.0.0.1:99999 }", "E120", 1, 17, "nothing to listen on"},
    {"listen: { http: 'unix:/' }", "E120", 1, 17, "unix:/path"},
    {"listen: { http: {} }", "E120", 1, 11, "nothing to listen on"},
    {"listen: { http: 127.0.0.1:80, resp: 127.0.0.1:80 }", "E120", 1, 37, "taken by http"},
    {"listen: { http: { address: 127.0.0.1:80, tls: { key: k } } }", "E120", 1, 42, "go together"},
    {"listen: { http: { address: 127.0.0.1:80, tls: { client_ca: k } } }", "E120", 1, 42, "both"},
    {"listen: { http: { address: 127.0.0.1:80, token: abc } }", "E121", 1, 49, "env:NAME"},
    {"listen: { http: { address: 127.0.0.1:80, token: 'env:' } }", "E121", 1, 49, "env:NAME"},
    {"listen: { http: { address: 127.0.0.1:80, token: env:A, manage_token: abc } }", "E121", 1, 70,
     "env:NAME"},
    {"listen: { http: { address: 127.0.0.1:80, manage_token: env:A } }", "E120", 1, 56,
     "write a token as well"},
    {"limits: { command: 1023 }", "E125", 1, 20, "write 1024 to 67108864 bytes"},
    {"limits: { command: 65MiB }", "E125", 1, 20, "write 1024 to 67108864 bytes"},
    {"limits: { buffers: 1023KiB }", "E125", 1, 20, "write 1048576 to 1099511627776 bytes"},
    {"limits: { buffers: 1025GiB }", "E125", 1, 20, "write 1048576 to 1099511627776 bytes"},
    {"limits: { idle_timeout: 999ms }", "E125", 1, 25, "write 1s to 1day"},
    {"limits: { idle_timeout: 25h }", "E125", 1, 25, "write 1s to 1day"},
    {"limits: { header_timeout: 99ms }", "E125", 1, 27, "write 100ms to 1h"},
    {"limits: { write_timeout: 61min }", "E125", 1, 26, "write 100ms to 1h"},
    {"limits: { write_timeout: 10 }", "E014", 1, 26, "a number and a unit"},
    {"hash_secret: hunter2", "E121", 1, 14, "env:NAME or file:PATH"},
    {"hash_secret: env:WEIR_TEST_THERE_IS_NO_SUCH", "E121", 1, 14, "no variable"},
    {"store: redis://x\nrules: [{ name: x, key: fingerprint, limit: 5/s }]", "E122", 1, 8,
     "hash_secret"},
    {"trusted_proxies: 10.0.0.1\nclient_ip: { hops: 1 }", "E123", 2, 20, "one of the two"},
    {"identity: { usr: { header: x } }", "E127", 1, 13, "user, api_key, org, tier"},
    {"identity: { user: {} }", "E127", 1, 13, "header: NAME"},
    {"identity: { user: { header: '' } }", "E127", 1, 13, "header: NAME"},
    {"identity: { user: { header: a, cookie: b } }", "E127", 1, 40, "keep one"},
};

class WrongPolicy : public testing::TestWithParam<Wrong> {};

// The only error, so that one mistake is not told twice.
TEST_P(WrongPolicy, IsToldOnceWithItsPlaceAndWhatToDo) {
  const Wrong& wrong = GetParam();
  const PolicyReport report = Policy::Parse(wrong.yaml, "weir.yaml");
  EXPECT_FALSE(report.policy.has_value());
  std::vector<Problem> errors;
  std::ranges::copy_if(report.problems, std::back_inserter(errors),
                       [](const Problem& p) { return p.severity == Severity::kError; });
  ASSERT_EQ(errors.size(), 1U) << testing::PrintToString([&] {
    std::string all;
    for (const Problem& error : errors) all += error.ToString() + "\n";
    return all;
  }());
  EXPECT_EQ(errors[0].code, wrong.code) << errors[0].ToString();
  EXPECT_EQ(errors[0].file, "weir.yaml");
  EXPECT_EQ(errors[0].line, wrong.line) << errors[0].ToString();
  EXPECT_EQ(errors[0].column, wrong.column) << errors[0].ToString();
  EXPECT_THAT(errors[0].message, HasSubstr(wrong.says));
  EXPECT_FALSE(errors[0].message.empty());
}

INSTANTIATE_TEST_SUITE_P(Syntax, WrongPolicy, testing::ValuesIn(kSyntax));
INSTANTIATE_TEST_SUITE_P(UnknownKeys, WrongPolicy, testing::ValuesIn(kUnknown));
INSTANTIATE_TEST_SUITE_P(Values, WrongPolicy, testing::ValuesIn(kValues));
INSTANTIATE_TEST_SUITE_P(Rules, WrongPolicy, testing::ValuesIn(kRules));
INSTANTIATE_TEST_SUITE_P(Limits, WrongPolicy, testing::ValuesIn(kLimits));
INSTANTIATE_TEST_SUITE_P(Service, WrongPolicy, testing::ValuesIn(kService));

TEST(WrongPolicies, ShowEveryCode) {
  std::set<std::string> shown;
  const auto add = [&](const auto& rows) {
    for (const Wrong& wrong : rows) shown.emplace(wrong.code);
  };
  add(kSyntax), add(kUnknown), add(kValues), add(kRules), add(kLimits), add(kService);
  // These come from files, from policies made in code, and from very many rules; see below.
  shown.insert({"E017", "E112", "E126"});
  for (const CodeMeaning& code : AllProblemCodes()) {
    const std::string name = NameOf(code.code);
    if (!name.starts_with('E')) continue;
    EXPECT_TRUE(shown.contains(name)) << name;
  }
}

std::vector<std::string> CodesOf(const PolicyReport& report) {
  std::vector<std::string> codes;
  for (const Problem& problem : report.problems) codes.push_back(problem.code);
  return codes;
}

TEST(WrongPolicies, AreToldAllTheirProblemsInTheOrderOfTheirPlaces) {
  const PolicyReport report = Policy::Parse(R"(store: mysql
fleet: 5
rules:
  - name: a b
    match: { path: login, methd: GET }
    key: usr
    limit: 5
    cost: { header: x, min: 9, max: 1 }
    block: { after: x }
  - name: c
    key: ip
    limit: 5/s
    strict: maybe
max_wait: 5
)");
  std::vector<std::string> places;
  for (const Problem& problem : report.problems) {
    places.push_back(problem.code + " " + std::to_string(problem.line));
  }
  EXPECT_EQ(places,
            (std::vector<std::string>{"E119 1", "E010 2", "E103 4", "E106 5", "E104 5", "E104 6",
                                      "E101 7", "E116 8", "E117 9", "E013 13", "E014 14"}));
}

TEST(WrongPolicies, MadeInCodeAreToldByTheirPath) {
  PolicySpec spec;
  spec.rules = {{.name = "x", .key = {"ip"}, .limit = "5/s", .tier_limit = "a"}};
  spec.fleet_size = -1;
  spec.redis.connections = 0;
  spec.limits.command = 0;
  spec.limits.buffers = 0;
  spec.limits.idle_timeout = Duration(0);
  spec.limits.header_timeout = Duration(0);
  spec.limits.write_timeout = Duration(0);
  const PolicyReport report = Policy::Make(spec);
  EXPECT_EQ(CodesOf(report), (std::vector<std::string>{"E125", "E125", "E125", "E125", "E125",
                                                       "E125", "E125", "E112"}));
  EXPECT_EQ(report.problems.at(0).ToString(),
            "fleet_size: E125 -1 is not allowed; write 1 to 1000000");
  EXPECT_EQ(report.problems.at(1).where, "redis.connections");
  EXPECT_EQ(report.problems.at(2).where, "limits.command");
  EXPECT_EQ(report.problems.at(6).ToString(),
            "limits.write_timeout: E125 0s is not allowed; write 100ms to 1h");
  EXPECT_EQ(report.problems.at(7).where, "rules[0].limit");
  EXPECT_EQ(report.problems.at(7).line, 0);
}

TEST(WrongPolicies, MadeInCodeMustBeUtf8) {
  PolicySpec spec;
  spec.rules = {{.name = "x",
                 .match = {{"user", {"fine", "not \xff fine"}}},
                 .key = {"ip"},
                 .limit = "5/s",
                 .message = "\xc3"}};
  spec.listen = {
      {"http", {.address = "127.0.0.1:80", .token = "env:A", .manage_token = "env:\xff"}}};
  const PolicyReport report = Policy::Make(spec);
  EXPECT_EQ(CodesOf(report), (std::vector<std::string>{"E009", "E009", "E009"}));
  EXPECT_EQ(report.problems.at(0).where, "listen.http");
  EXPECT_EQ(report.problems.at(1).where, "rules[0].match.user[1]");
  EXPECT_EQ(report.problems.at(2).where, "rules[0].message");
}

TEST(WrongPolicies, HaveTooManyRulesForEveryRequest) {
  PolicySpec spec;
  for (int i = 0; i < 32; ++i) {
    spec.rules.push_back({.name = std::to_string(i),
                          .key = {"ip"},
                          .limit = std::to_string(i + 1) + "/s burst " + std::to_string(99 - i)});
  }
  EXPECT_TRUE(Policy::Make(spec).policy.has_value());
  spec.rules.push_back({.name = "one-more", .key = {"ip"}, .limit = "50/s"});
  const PolicyReport report = Policy::Make(spec);
  ASSERT_EQ(CodesOf(report), (std::vector<std::string>{"E126"}));
  EXPECT_THAT(report.problems[0].message, HasSubstr("give some of them a match"));
}

TEST(WrongPolicies, OfVeryManyOverridesAreToldTheFirst) {
  std::string yaml = "rules:\n  - name: x\n    key: ip\n    limit: 5/s\n    overrides:\n";
  for (int i = 0; i < 50'000; ++i) yaml += "      no" + std::to_string(i) + ": 6/s\n";
  EXPECT_EQ(Policy::Parse(yaml).problems.size(), 20U);
}

}  // namespace
}  // namespace weir
