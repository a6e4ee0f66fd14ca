// Every key of a policy file, and every short form, as what it stands for.
#include "policy/policy_reader.h"

#include <gtest/gtest.h>

#include "policy/yaml_tree.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

PolicySpec ReadSpec(std::string_view text) {
  const YamlReport report = ReadYaml(text);
  EXPECT_TRUE(report.root.has_value()) << text;
  if (!report.root) return {};
  ProblemList problems("");
  problems.SetTree(&*report.root);
  PolicySpec spec = ReadPolicy(*report.root, problems);
  for (const Problem& problem : problems.Take()) ADD_FAILURE() << problem.ToString();
  return spec;
}

RuleSpec ReadOne(const std::string& settings) {
  const PolicySpec spec = ReadSpec("rules:\n  - name: x\n    key: ip\n    limit: 5/s\n" + settings);
  EXPECT_EQ(spec.rules.size(), 1U);
  return spec.rules.empty() ? RuleSpec{} : spec.rules.front();
}

Match ReadOneMatch(const std::string& match) { return ReadOne("    match: " + match + "\n").match; }

KeySpec ReadOneKey(const std::string& key) {
  return ReadSpec("rules: [{ name: x, limit: 5/s, key: " + key + " }]").rules.at(0).key;
}

Match Nested(std::vector<Match> Match::* kind, std::vector<Match> parts) {
  Match match;
  match.*kind = std::move(parts);
  return match;
}

TEST(PolicyReader, ReadsStoreAndListeners) {
  EXPECT_EQ(ReadSpec("store: redis://a:1").store, (std::vector<std::string>{"redis://a:1"}));
  EXPECT_EQ(ReadSpec("store: [redis://a:1, redis://b:1]").store,
            (std::vector<std::string>{"redis://a:1", "redis://b:1"}));
  const PolicySpec spec = ReadSpec(R"(
listen:
  http: 127.0.0.1:8080
  resp: unix:/run/weir.sock
  grpc:
    address: "[::1]:8081"
    tls: { certificate: c.pem, key: k.pem, client_ca: ca.pem }
    token: env:TOKEN
    manage_token: file:/run/manage
)");
  EXPECT_EQ(spec.listen.at("http"), (ListenerSpec{.address = "127.0.0.1:8080"}));
  EXPECT_EQ(spec.listen.at("resp"), (ListenerSpec{.address = "unix:/run/weir.sock"}));
  EXPECT_EQ(spec.listen.at("grpc"), (ListenerSpec{.address = "[::1]:8081",
                                                  .tls_certificate = "c.pem",
                                                  .tls_key = "k.pem",
                                                  .tls_client_ca = "ca.pem",
                                                  .token = "env:TOKEN",
                                                  .manage_token = "file:/run/manage"}));
}

TEST(PolicyReader, ReadsWhoIsAsking) {
  const PolicySpec spec = ReadSpec(R"(
trusted_proxies: [10.0.0.0/8, "::1"]
identity:
  user: { header: X-User }
  api_key: { cookie: k, from: anyone, hash: true }
  org: { query: org, from: trusted }
  tier: { default: free }
client_ip: { header: forwarded, hops: 2, ipv6_prefix: 56 }
hash_secret: env:SECRET
)");
  EXPECT_EQ(spec.trusted_proxies, (std::vector<std::string>{"10.0.0.0/8", "::1"}));
  EXPECT_EQ(spec.identity.at("user"), (IdentitySource{.from = "header.X-User"}));
  EXPECT_EQ(spec.identity.at("api_key"),
            (IdentitySource{.from = "cookie.k", .from_anyone = true, .hash = true}));
  EXPECT_EQ(spec.identity.at("org"), (IdentitySource{.from = "query.org"}));
  EXPECT_EQ(spec.identity.at("tier"), (IdentitySource{.fallback = "free"}));
  EXPECT_EQ(spec.client_ip,
            (ClientIpSpec{.header = ForwardingHeader::kForwarded, .hops = 2, .ipv6_prefix = 56}));
  EXPECT_EQ(spec.hash_secret, "env:SECRET");
  EXPECT_EQ(ReadSpec("trusted_proxies: 10.0.0.1").trusted_proxies,
            (std::vector<std::string>{"10.0.0.1"}));
}

TEST(PolicyReader, ReadsTheSettingsOfTheService) {
  const PolicySpec spec = ReadSpec(R"(
headers: [ratelimit]
reset: delta
unidentified: skip
on_store_failure: closed
fleet_size: 12
max_wait: 90s
queue_hold: 0s
manage: open
redis: { connect_timeout: 1s, timeout: 20ms, connections: 4, max_in_flight: 2k }
limits:
  { connections: 1, per_address: 2, pipeline: 3, output: 4KiB, waiters: 5, header: 8KiB, body: 1MB,
    command: 2KiB, buffers: 1024GiB, idle_timeout: 1day, header_timeout: 100ms, write_timeout: 1h }
memory: { cap: 1GiB, snapshot: /var/weir }
)");
  EXPECT_EQ(spec.headers, (std::vector<HeaderFamily>{HeaderFamily::kRateLimit}));
  EXPECT_EQ(spec.reset, ResetStyle::kDelta);
  EXPECT_EQ(spec.unidentified, Unidentified::kSkipRule);
  EXPECT_EQ(spec.on_store_failure, FailureMode::kClosed);
  EXPECT_EQ(spec.fleet_size, 12);
  EXPECT_EQ(spec.max_wait, seconds(90));
  EXPECT_EQ(spec.queue_hold, Duration(0));
  EXPECT_EQ(spec.manage, ManageRight::kOpen);
  EXPECT_EQ(spec.redis, (RedisSpec{.connect_timeout = seconds(1),
                                   .timeout = milliseconds(20),
                                   .connections = 4,
                                   .max_in_flight = 2000}));
  EXPECT_EQ(spec.limits, (ServiceLimits{.connections = 1,
                                        .per_address = 2,
                                        .pipeline = 3,
                                        .output = 4096,
                                        .waiters = 5,
                                        .header = 8192,
                                        .body = 1'000'000,
                                        .command = 2048,
                                        .buffers = std::int64_t{1} << 40,
                                        .idle_timeout = hours(24),
                                        .header_timeout = milliseconds(100),
                                        .write_timeout = hours(1)}));
  EXPECT_EQ(spec.memory, (MemorySpec{.cap = std::int64_t{1} << 30, .snapshot = "/var/weir"}));
}

TEST(PolicyReader, ReadsListsAndTiers) {
  const PolicySpec spec = ReadSpec(R"(
allow: { path: /healthz }
deny: [{ ip: 192.0.2.0/24 }, { user: evil }]
tiers:
  free: { requests: 10/min }
  42: { requests: 100/min, daily: deny }
)");
  EXPECT_EQ(spec.allow, (std::vector<Match>{Match{{"path", {"/healthz"}}}}));
  EXPECT_EQ(spec.deny,
            (std::vector<Match>{Match{{"ip", {"192.0.2.0/24"}}}, Match{{"user", {"evil"}}}}));
  EXPECT_EQ(spec.tiers.at("free"), (TierSpec{{"requests", "10/min"}}));
  EXPECT_EQ(spec.tiers.at("42"), (TierSpec{{"requests", "100/min"}, {"daily", "deny"}}));
}

TEST(PolicyReader, ReadsHowARuleCounts) {
  const RuleSpec rule = ReadOne(R"(    algorithm: fixed_window
    align: calendar
    zone: Europe/Berlin
    week_start: sunday
    strict: true
    sub_windows: 20
    queue: true
    overdraft: true
)");
  EXPECT_EQ(rule, (RuleSpec{.name = "x",
                            .key = {"ip"},
                            .limit = "5/s",
                            .algorithm = Algorithm::kFixedWindow,
                            .align = Align::kCalendar,
                            .zone = "Europe/Berlin",
                            .week_start = std::chrono::Sunday,
                            .strict = true,
                            .sub_windows = 20,
                            .queue = true,
                            .overdraft = true}));
}

TEST(PolicyReader, ReadsWhatARuleDoes) {
  const RuleSpec rule = ReadOne(R"(    mode: shadow
    enforce_percent: 12.5
    message: "Slow: down"
    unidentified: deny
    on_store_failure: open
)");
  EXPECT_EQ(rule, (RuleSpec{.name = "x",
                            .key = {"ip"},
                            .limit = "5/s",
                            .mode = RuleMode::kShadow,
                            .enforce_percent = 12.5,
                            .message = "Slow: down",
                            .unidentified = Unidentified::kDeny,
                            .on_store_failure = FailureMode::kOpen}));
}

TEST(PolicyReader, ReadsALimitAsTextOrOfATier) {
  const PolicySpec spec = ReadSpec(
      "rules:\n"
      "  - { name: 1, key: ip, limit: 100/min burst 5 }\n"
      "  - { name: b, key: ip, limit: { tier: daily } }\n");
  EXPECT_EQ(spec.rules.at(0).name, "1");
  EXPECT_EQ(spec.rules.at(0).limit, "100/min burst 5");
  EXPECT_EQ(spec.rules.at(1).limit, "");
  EXPECT_EQ(spec.rules.at(1).tier_limit, "daily");
}

TEST(PolicyReader, ReadsOneValueOrSeveral) {
  EXPECT_EQ(ReadOneMatch("{ method: POST }"), (Match{{"method", {"POST"}}}));
  EXPECT_EQ(ReadOneMatch("{ method: [POST, PUT] }"), (Match{{"method", {"POST", "PUT"}}}));
  EXPECT_EQ(ReadOneMatch("{ method: { any: [POST, PUT] } }"), (Match{{"method", {"POST", "PUT"}}}));
  EXPECT_EQ(ReadOneMatch("{ method: { not: [GET, HEAD] } }"),
            (Match{Not({"method", {"GET", "HEAD"}})}));
  EXPECT_EQ(ReadOneMatch("{ method: { not: { not: GET } } }"), (Match{{"method", {"GET"}}}));
  EXPECT_EQ(ReadOneMatch("{ header.x: 1 }"), (Match{{"header.x", {"1"}}}));
}

TEST(PolicyReader, TellsPresenceFromValuesThatReadLikeIt) {
  EXPECT_EQ(ReadOneMatch("{ user: present, org: absent }"),
            (Match{Present("user"), Absent("org")}));
  EXPECT_EQ(ReadOneMatch("{ user: \"present\", org: 'absent' }"),
            (Match{{"user", {"present"}}, {"org", {"absent"}}}));
  EXPECT_EQ(ReadOneMatch("{ user: [\"present\", ann] }"), (Match{{"user", {"present", "ann"}}}));
  EXPECT_EQ(ReadOneMatch("{ user: { not: present } }"), (Match{Not(Present("user"))}));
  EXPECT_EQ(ReadOneMatch("{ user: Present }"), (Match{{"user", {"Present"}}}));
}

TEST(PolicyReader, ReadsMatchesInMatches) {
  const Match get{{"method", {"GET"}}};
  const Match post{{"method", {"POST"}}};
  EXPECT_EQ(ReadOneMatch("{ any: [{ method: GET }, { method: POST }] }"),
            Nested(&Match::any, {get, post}));
  EXPECT_EQ(ReadOneMatch("{ any: { method: GET } }"), Nested(&Match::any, {get}));
  EXPECT_EQ(ReadOneMatch("{ not: { method: GET } }"), Nested(&Match::none, {get}));
  EXPECT_EQ(ReadOneMatch("{ all: [{ not: [{ method: GET }, { method: POST }] }] }"),
            Nested(&Match::all, {Nested(&Match::none, {get, post})}));
  EXPECT_EQ(ReadOneMatch("{}"), Match());
}

TEST(PolicyReader, ReadsEveryFormOfAKey) {
  EXPECT_EQ(ReadOneKey("user"), (KeySpec{"user"}));
  EXPECT_EQ(ReadOneKey("global"), KeySpec());
  EXPECT_EQ(ReadOneKey("[user, path.id]"), (KeySpec{"user", "path.id"}));
  EXPECT_EQ(ReadOneKey("{ first_of: [user, ip] }"), (KeySpec{FirstOf({"user", "ip"})}));
  EXPECT_EQ(ReadOneKey("[org, { first_of: [user, ip] }]"),
            (KeySpec{"org", FirstOf({"user", "ip"})}));
  KeyAttribute ip("ip");
  ip.ipv4_prefix = 24;
  ip.ipv6_prefix = 56;
  EXPECT_EQ(ReadOneKey("{ ip: { v4: 24, v6: 56 } }"), (KeySpec{ip}));
  EXPECT_EQ(ReadOneKey("{ first_of: [{ api_key: { hash: true } }, ip] }"),
            (KeySpec{FirstOf({Hashed("api_key"), "ip"})}));
}

TEST(PolicyReader, ReadsEveryFormOfACost) {
  EXPECT_EQ(ReadOne("    cost: 5\n").cost, (CostSpec{.fallback = 5}));
  EXPECT_EQ(ReadOne("    cost: 2k\n").cost, (CostSpec{.fallback = 2000}));
  EXPECT_EQ(
      ReadOne("    cost: { header: x-cost, from: anyone, default: 2, min: 0, max: 1k }\n").cost,
      (CostSpec{.attribute = "header.x-cost",
                .from_anyone = true,
                .fallback = 2,
                .min = 0,
                .max = 1000}));
  EXPECT_EQ(ReadOne("    cost: { cookie: c }\n").cost->attribute, "cookie.c");
  EXPECT_EQ(ReadOne("    cost: { query: q }\n").cost->attribute, "query.q");
  EXPECT_EQ(ReadOne("    cost: { descriptor: d, from: trusted }\n").cost->attribute,
            "descriptor.d");
  EXPECT_FALSE(ReadOne("").cost.has_value());
}

TEST(PolicyReader, ReadsBans) {
  EXPECT_EQ(ReadOne("    block: { after: 10 denials in 1min, for: 10min }\n").block,
            (BlockSpec{.denials = 10, .within = minutes(1), .duration = minutes(10)}));
  EXPECT_EQ(
      ReadOne("    block: { after: 1 denial in 1s, for: 1min, growing: 3x up to 1h }\n").block,
      (BlockSpec{.denials = 1,
                 .within = seconds(1),
                 .duration = minutes(1),
                 .growing = 3,
                 .up_to = hours(1)}));
}

TEST(PolicyReader, ReadsEveryFormOfOverrides) {
  EXPECT_EQ(ReadOne("    overrides: customers.csv\n").override_files,
            (std::vector<std::string>{"customers.csv"}));
  const RuleSpec map = ReadOne("    overrides: { ann: 10/s, 42: deny }\n");
  EXPECT_EQ(map.overrides,
            (std::vector<OverrideSpec>{{{{"", "ann"}}, "10/s"}, {{{"", "42"}}, "deny"}}));
  const RuleSpec list = ReadOne(R"(    overrides:
      - { user: ann, org: acme, limit: 10/s }
      - { file: more.jsonl }
      - { key: bob, limit: 20/s }
)");
  EXPECT_EQ(list.overrides, (std::vector<OverrideSpec>{{{{"user", "ann"}, {"org", "acme"}}, "10/s"},
                                                       {{{"", "bob"}}, "20/s"}}));
  EXPECT_EQ(list.override_files, (std::vector<std::string>{"more.jsonl"}));
}

TEST(PolicyReader, LeavesWhatIsNotThereAsByDefault) {
  EXPECT_EQ(ReadSpec("rules:"), PolicySpec());
  EXPECT_EQ(ReadSpec("rules: []\nallow: []\ntiers: {}\nidentity: {}"), PolicySpec());
  EXPECT_EQ(ReadOne(""), (RuleSpec{.name = "x", .key = {"ip"}, .limit = "5/s"}));
}

TEST(PolicyReader, TakesAnchorsAndAliases) {
  const PolicySpec spec = ReadSpec(
      "allow: &ours { ip: 10.0.0.0/8 }\n"
      "rules: [{ name: x, key: ip, limit: 5/s, match: { not: *ours } }]");
  EXPECT_EQ(spec.rules.at(0).match, Nested(&Match::none, {spec.allow.at(0)}));
}

TEST(PolicyKeys, AreAllKnownToWhoeverAsks) {
  std::size_t keys = 0;
  for (const KeysOfMap& map : AllPolicyKeys()) {
    EXPECT_FALSE(map.keys.empty()) << map.map;
    keys += map.keys.size();
  }
  EXPECT_EQ(keys, 21U + 6U + 3U + 3U + 4U + 3U + 4U + 12U + 2U + 20U + 8U + 3U + 3U);
}

}  // namespace
}  // namespace weir
