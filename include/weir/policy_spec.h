// A policy as data: everything that may stand in a policy file, with its defaults. The names are
// those of the file, and a policy made here and one read from a file are the same thing.
//
//   weir::PolicySpec spec;
//   spec.rules.push_back({.name = "per-ip", .key = {"ip"}, .limit = "200/min"});
//   spec.rules.push_back({.name = "login",
//                         .match = {{"path", {"/auth/login"}}, {"method", {"POST"}}},
//                         .key = {"ip"},
//                         .limit = "5/min",
//                         .algorithm = weir::Algorithm::kSlidingLog});
//   std::puts(weir::ToYaml(spec).c_str());
//
// Nothing is checked until Policy::Make.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weir/limit.h>
#include <weir/time.h>

namespace weir {

// --- When a rule applies ---

// One attribute and what it must be. Attributes are `ip user api_key org tier method path host
// fingerprint domain`, `header.NAME`, `cookie.NAME`, `query.NAME` and `descriptor.NAME`.
struct AttributeTest {
  enum class Wants : std::uint8_t { kValue, kPresent, kAbsent };

  std::string attribute;
  // Holds if one of them fits: a text in which `*` stands for anything; a path pattern for `path`;
  // an address or a range (10.0.0.0/8) for `ip`.
  std::vector<std::string> any_of{};
  Wants wants = Wants::kValue;
  bool negated = false;  // Holds if it would not; so an absent attribute passes a negated value.

  friend bool operator==(const AttributeTest&, const AttributeTest&) = default;
};

inline AttributeTest Present(std::string attribute) {
  return {.attribute = std::move(attribute), .wants = AttributeTest::Wants::kPresent};
}
inline AttributeTest Absent(std::string attribute) {
  return {.attribute = std::move(attribute), .wants = AttributeTest::Wants::kAbsent};
}
inline AttributeTest Not(AttributeTest test) {
  test.negated = !test.negated;
  return test;
}

// Everything in it must hold; an empty one always does.
struct Match {
  Match() = default;
  Match(std::initializer_list<AttributeTest> tests) : attributes(tests) {}

  std::vector<AttributeTest> attributes;
  std::vector<Match> all;   // Every one of these,
  std::vector<Match> any;   // at least one of these if there are any,
  std::vector<Match> none;  // and none of these (`not` in the file).

  bool empty() const { return attributes.empty() && all.empty() && any.empty() && none.empty(); }
  friend bool operator==(const Match&, const Match&) = default;
};

// --- Whom a rule counts ---

// An attribute as part of a key. Besides those of a match there is `path.NAME`: the segment that
// stands where the rule's path pattern has {NAME}.
struct KeyAttribute {
  KeyAttribute(std::string attribute) : name(std::move(attribute)) {}  // NOLINT: meant to convert
  KeyAttribute(const char* attribute) : name(attribute) {}             // NOLINT

  std::string name;
  bool hash = false;  // Only a keyed hash of the value is stored.
  // Addresses count by their first so many bits; 0 is the policy's default: 32, and
  // client_ip.ipv6_prefix.
  int ipv4_prefix = 0;
  int ipv6_prefix = 0;

  friend bool operator==(const KeyAttribute&, const KeyAttribute&) = default;
};

// The first of its attributes that the request has.
struct KeyPart {
  KeyPart(std::string attribute) : first_of{std::move(attribute)} {}   // NOLINT
  KeyPart(const char* attribute) : first_of{attribute} {}              // NOLINT
  KeyPart(KeyAttribute attribute) : first_of{std::move(attribute)} {}  // NOLINT
  explicit KeyPart(std::vector<KeyAttribute> attributes) : first_of(std::move(attributes)) {}

  std::vector<KeyAttribute> first_of;

  friend bool operator==(const KeyPart&, const KeyPart&) = default;
};

inline KeyPart FirstOf(std::vector<KeyAttribute> attributes) {
  return KeyPart(std::move(attributes));
}
inline KeyAttribute Hashed(KeyAttribute attribute) {
  attribute.hash = true;
  return attribute;
}

// The parts of a key, in their order. None: all requests that match share one count (`global`).
using KeySpec = std::vector<KeyPart>;

// What to do with a request that lacks a part of the key.
enum class Unidentified : std::uint8_t {
  kShare,     // All of them are counted together.
  kDeny,      // They are refused.
  kSkipRule,  // The rule does not apply to them.
};

// --- How much ---

// What one request spends under a rule.
struct CostSpec {
  // header.NAME, query.NAME, cookie.NAME or descriptor.NAME holds it. Empty: it is fixed.
  std::string attribute{};
  bool from_anyone = false;   // Believe it whoever says so, not only those who are trusted.
  std::int64_t fallback = 1;  // `default`: when it is absent, no number, or not believed.
  std::int64_t min = 1;       // What is stated below or above these counts as these.
  std::int64_t max = kMaxCount;

  friend bool operator==(const CostSpec&, const CostSpec&) = default;
};

// Who is denied too often is shut out for a while.
struct BlockSpec {
  std::int64_t denials = 0;  // So many
  Duration within{0};        // in so long
  Duration duration{0};      // shut a key out for this long (`for`);
  // each time `growing` times longer, up to `up_to`. One such step is forgotten for every `up_to`
  // that passes. 1: always the same.
  std::int64_t growing = 1;
  Duration up_to{0};

  friend bool operator==(const BlockSpec&, const BlockSpec&) = default;
};

// Another limit for certain keys.
struct OverrideSpec {
  // Attribute and value of each part of the key. A key that has only one may leave out its name.
  std::vector<std::pair<std::string, std::string>> key;
  std::string limit;

  friend bool operator==(const OverrideSpec&, const OverrideSpec&) = default;
};

enum class RuleMode : std::uint8_t {
  kEnforce,
  kShadow,  // Counts and decides, but never stops a request.
  kOff,
};

struct RuleSpec {
  std::string name;  // Letters, digits, `.`, `_` and `-`. The counts of a rule go by its name.
  Match match{};
  KeySpec key{};
  std::string limit{};  // "200/min burst 50"; or
  // `limit: { tier: NAME }`: what the tier of the request has under that name.
  std::string tier_limit{};

  // How the limit counts: as in LimitSpec.
  Algorithm algorithm = Algorithm::kTokenBucket;
  Align align = Align::kEpoch;
  std::string zone = "UTC";
  std::chrono::weekday week_start = std::chrono::Monday;
  bool strict = false;
  int sub_windows = 10;
  bool queue = false;
  bool overdraft = false;

  std::optional<CostSpec> cost{};  // What the request says, 1 if nothing.
  RuleMode mode = RuleMode::kEnforce;
  // Enforce for this share of keys, always the same ones on every node, and shadow for the rest.
  double enforce_percent = 100;
  std::string message{};  // For those who are denied.
  // The policy's if not set.
  std::optional<Unidentified> unidentified{};
  std::optional<FailureMode> on_store_failure{};
  std::optional<BlockSpec> block{};
  std::vector<OverrideSpec> overrides{};
  std::vector<std::string> override_files{};  // CSV or JSON lines, beside the policy file.

  friend bool operator==(const RuleSpec&, const RuleSpec&) = default;
};

// Limits by name.
using TierSpec = std::map<std::string, std::string>;

// --- Who is asking ---

// Where an attribute comes from in a request that was not made by hand: `user`, `api_key`, `org`
// and `tier`.
struct IdentitySource {
  std::string from{};        // header.NAME, cookie.NAME or query.NAME.
  bool from_anyone = false;  // Believe it from everybody, not only from trusted_proxies.
  bool hash = false;         // Keys hold only a keyed hash of it.
  std::string fallback{};    // `default`, if it is absent or not believed.

  friend bool operator==(const IdentitySource&, const IdentitySource&) = default;
};

enum class ForwardingHeader : std::uint8_t { kXForwardedFor, kForwarded };

struct ClientIpSpec {
  ForwardingHeader header = ForwardingHeader::kXForwardedFor;  // The one that your proxy sets.
  // How many proxies stand before this service; instead of naming them in trusted_proxies. 0: they
  // are named.
  int hops = 0;
  int ipv6_prefix = 64;  // By how many bits IPv6 addresses count in keys.

  friend bool operator==(const ClientIpSpec&, const ClientIpSpec&) = default;
};

// --- The service ---

struct ListenerSpec {
  std::string address;            // 127.0.0.1:8080, [::1]:8080 or unix:/path.
  std::string tls_certificate{};  // Files, PEM.
  std::string tls_key{};
  std::string tls_client_ca{};
  // Who may use it, and who may also refund, penalize and reset: env:NAME or file:PATH. Without the
  // first everybody may; without the second, the first does for both.
  std::string token{};
  std::string manage_token{};

  friend bool operator==(const ListenerSpec&, const ListenerSpec&) = default;
};

enum class HeaderFamily : std::uint8_t { kXRateLimit, kRateLimit };
enum class ResetStyle : std::uint8_t { kEpoch, kDelta };
enum class ManageRight : std::uint8_t { kToken, kOpen };

struct RedisSpec {
  Duration connect_timeout = std::chrono::milliseconds(200);
  Duration timeout = std::chrono::milliseconds(50);
  int connections = 1;
  int max_in_flight = 1024;

  friend bool operator==(const RedisSpec&, const RedisSpec&) = default;
};

struct ServiceLimits {
  std::int64_t connections = 10'000;
  std::int64_t per_address = 1'000;
  std::int64_t pipeline = 1'000;
  std::int64_t output = std::int64_t{1} << 20;  // Bytes that wait to be sent on a connection.
  std::int64_t waiters = 10'000;
  std::int64_t header = std::int64_t{16} << 10;        // Bytes.
  std::int64_t body = std::int64_t{1} << 20;           // Bytes.
  std::int64_t command = std::int64_t{64} << 10;       // Bytes of one RESP command.
  std::int64_t buffers = std::int64_t{256} << 20;      // Bytes held for all connections together.
  Duration idle_timeout = std::chrono::minutes(5);     // Between two requests.
  Duration header_timeout = std::chrono::seconds(10);  // From the first byte of one to its last.
  Duration write_timeout = std::chrono::seconds(10);   // For a client to take its replies.

  friend bool operator==(const ServiceLimits&, const ServiceLimits&) = default;
};

struct MemorySpec {
  std::int64_t cap = std::int64_t{256} << 20;  // Bytes for the state of all keys.
  std::string snapshot{};                      // A file.

  friend bool operator==(const MemorySpec&, const MemorySpec&) = default;
};

struct PolicySpec {
  std::vector<std::string> store = {"memory"};       // Or Redis addresses; several are shards.
  std::map<std::string, ListenerSpec> listen{};      // By protocol: http, resp, grpc.
  std::vector<std::string> trusted_proxies{};        // Addresses and ranges.
  std::map<std::string, IdentitySource> identity{};  // By attribute.
  ClientIpSpec client_ip{};
  // The secret of hashed keys and fingerprints: env:NAME or file:PATH. Empty: drawn at start, which
  // does for state that lives in this process.
  std::string hash_secret{};

  std::vector<HeaderFamily> headers = {HeaderFamily::kXRateLimit, HeaderFamily::kRateLimit};
  ResetStyle reset = ResetStyle::kEpoch;
  Unidentified unidentified = Unidentified::kShare;
  FailureMode on_store_failure = FailureMode::kStatic;
  int fleet_size = 0;  // How many processes share the store. 0: counted by heartbeats.
  Duration max_wait = std::chrono::seconds(60);
  // How long an answer whose delay the wire cannot carry is held: for forward-auth (1 s) and
  // Envoy (0), if not set.
  std::optional<Duration> queue_hold{};
  ManageRight manage = ManageRight::kToken;
  RedisSpec redis{};
  ServiceLimits limits{};
  MemorySpec memory{};

  std::vector<Match> allow{};  // Let through uncounted, before anything else is looked at;
  std::vector<Match> deny{};   // then refused.
  std::map<std::string, TierSpec> tiers{};
  std::vector<RuleSpec> rules{};

  friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

}  // namespace weir
