// Whether the parts of a policy that are not about rules make sense.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/attribute.h"
#include "policy/policy_compiler.h"
#include "policy/policy_ranges.h"
#include "policy/store_address.h"

namespace weir {
namespace {

bool IsPortNumber(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 0 && port <= 65'535;
}

// 127.0.0.1:8080, [::1]:8080, localhost:8080
bool IsHostAndPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !IsPortNumber(text.substr(colon + 1))) return false;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    return host.ends_with(']') && IpAddress::Parse(host.substr(1, host.size() - 2)).has_value();
  }
  return !host.empty() && host.find_first_of(":/[] ") == std::string_view::npos;
}

// unix:/path, as long as a socket's path may be.
bool IsUnixSocket(std::string_view text) {
  constexpr std::string_view kScheme = "unix:";
  constexpr std::size_t kLongest = 107;
  if (!text.starts_with("unix:/")) return false;
  text.remove_prefix(kScheme.size());
  return text.size() > 1 && text.size() <= kLongest && !text.contains('\0');
}

// Where a secret is, with something behind the colon.
bool IsSecretSource(std::string_view text) {
  const auto names = [&](std::string_view scheme) {
    return text.starts_with(scheme) && text.size() > scheme.size();
  };
  return names("env:") || names("file:");
}

void CheckTls(const ListenerSpec& listener, const Where& where, ProblemList& problems) {
  const bool certificate = !listener.tls_certificate.empty();
  const bool key = !listener.tls_key.empty();
  if (certificate != key || (!certificate && !listener.tls_client_ca.empty())) {
    problems.Add(ProblemCode::kBadListener, Where(where, "tls"),
                 "a certificate and a key go together, and client_ca needs both; write them");
  }
}

void CheckToken(const std::string& token, const Where& where, ProblemList& problems) {
  if (token.empty() || IsSecretSource(token)) return;
  problems.Add(ProblemCode::kBadSecret, where,
               "a token does not belong into a policy; write env:NAME or file:PATH");
}

void CheckTokens(const ListenerSpec& listener, const Where& where, ProblemList& problems) {
  const Where token(where, "token");
  const Where manage_token(where, "manage_token");
  CheckToken(listener.token, token, problems);
  CheckToken(listener.manage_token, manage_token, problems);
  if (!listener.manage_token.empty() && listener.token.empty() && !problems.HasErrorAt(token)) {
    problems.Add(ProblemCode::kBadListener, manage_token,
                 "who may manage is told apart from who may ask, but everybody may ask; write a "
                 "token as well, or only that");
  }
}

void CheckListeners(const PolicySpec& spec, ProblemList& problems) {
  const Where top;
  const Where listen(top, "listen");
  std::map<std::string_view, std::string_view> protocols;  // By address.
  for (const auto& [protocol, listener] : spec.listen) {
    const Where where(listen, protocol);
    const bool known = protocol == "http" || protocol == "resp" || protocol == "grpc";
    if (!known) {
      problems.Add(ProblemCode::kBadListener, where,
                   "unknown protocol " + Quoted(protocol) + "; there are http, resp and grpc");
    }
    if (!IsUnixSocket(listener.address) && !IsHostAndPort(listener.address)) {
      if (!problems.HasErrorWithin(where)) {
        problems.Add(
            ProblemCode::kBadListener, where,
            Quoted(listener.address) +
                " is nothing to listen on; write 127.0.0.1:8080, [::1]:8080 or unix:/path");
      }
    } else if (const auto [taken, is_new] = protocols.emplace(listener.address, protocol);
               !is_new && !listener.address.ends_with(":0")) {
      problems.Add(ProblemCode::kBadListener, where,
                   Quoted(listener.address) + " is taken by " + std::string(taken->second) +
                       " already; write another");
    }
    CheckTls(listener, where, problems);
    CheckTokens(listener, where, problems);
  }
}

// What is wrong with an address among those before it, or nothing.
std::string ShardProblem(const StoreAddress& address, std::span<const StoreAddress> before,
                         std::size_t shards) {
  const bool by_itself =
      address.kind == StoreAddress::Kind::kCluster || address.kind == StoreAddress::Kind::kSentinel;
  if (by_itself && shards > 1) {
    return "a cluster or sentinels cannot be one of several shards; write only that, or only "
           "redis://, rediss:// and redis+unix://";
  }
  const auto same = [&](const StoreAddress& other) {
    return other.hosts == address.hosts && other.path == address.path &&
           other.database == address.database;
  };
  if (std::ranges::none_of(before, same)) return "";
  return Quoted(address.ToString()) + " is among the shards already; remove one of them";
}

void CheckStores(const PolicySpec& spec, ProblemList& problems) {
  constexpr std::string_view kMemory = "memory";
  const Where top;
  const Where store(top, "store");
  std::vector<StoreAddress> addresses;
  for (std::size_t i = 0; i < spec.store.size(); ++i) {
    const Where where = spec.store.size() == 1 ? store : Where(store, i);
    if (spec.store[i] == kMemory) {
      if (spec.store.size() == 1) continue;
      problems.Add(ProblemCode::kBadStore, where,
                   "memory cannot be one of several shards; write only that, or only others");
      continue;
    }
    Result<StoreAddress> address = StoreAddress::Parse(spec.store[i]);
    const std::string problem = address ? ShardProblem(*address, addresses, spec.store.size())
                                        : std::move(address.error().message);
    if (!problem.empty()) problems.Add(ProblemCode::kBadStore, where, problem);
    if (address) addresses.push_back(*std::move(address));
  }
  if (spec.store.empty() && !problems.HasErrorWithin(store)) {
    problems.Add(ProblemCode::kBadStore, store, "no store; write memory");
  }
}

void CheckTrust(const PolicySpec& spec, ProblemList& problems) {
  const Where top;
  const Where proxies(top, "trusted_proxies");
  for (std::size_t i = 0; i < spec.trusted_proxies.size(); ++i) {
    const Where where(proxies, i);
    const std::optional<IpRange> range = IpRange::Parse(spec.trusted_proxies[i]);
    if (!range) {
      problems.Add(ProblemCode::kBadAddress, where,
                   Quoted(spec.trusted_proxies[i]) +
                       " is no address or range; write 10.0.0.0/8, with zeros behind the prefix");
    } else if (range->prefix == 0) {
      problems.Add(
          ProblemCode::kTrustsEveryone, where,
          Quoted(spec.trusted_proxies[i]) + " lets every client say who it is; name your proxies");
    }
  }
  if (spec.client_ip.hops != 0 && !spec.trusted_proxies.empty()) {
    problems.Add(ProblemCode::kTwoWaysOfTrust, Where(Where(top, "client_ip"), "hops"),
                 "proxies are counted here and named in trusted_proxies; write one of the two");
  }
}

// The ranges that reading a file keeps to, for those who make a policy in code.
class RangeChecker {
 public:
  RangeChecker(const PolicySpec& spec, ProblemList& problems) : spec_(spec), problems_(problems) {}

  void Check() {
    const Where client_ip(top_, "client_ip");
    if (spec_.client_ip.hops != 0) Check(client_ip, "hops", spec_.client_ip.hops, kHopRange);
    Check(client_ip, "ipv6_prefix", spec_.client_ip.ipv6_prefix, kDefaultIpv6PrefixRange);
    if (spec_.fleet_size != 0) Check(top_, "fleet_size", spec_.fleet_size, kFleetRange);
    Check(top_, "max_wait", spec_.max_wait, kWaitRange);
    if (spec_.queue_hold) Check(top_, "queue_hold", *spec_.queue_hold, kWaitRange);
    const Where redis(top_, "redis");
    Check(redis, "connect_timeout", spec_.redis.connect_timeout, kTimeoutRange);
    Check(redis, "timeout", spec_.redis.timeout, kTimeoutRange);
    Check(redis, "connections", spec_.redis.connections, kConnectionRange);
    Check(redis, "max_in_flight", spec_.redis.max_in_flight, kInFlightRange);
    const Where limits(top_, "limits");
    Check(limits, "connections", spec_.limits.connections, kServiceCountRange);
    Check(limits, "per_address", spec_.limits.per_address, kServiceCountRange);
    Check(limits, "pipeline", spec_.limits.pipeline, kServiceCountRange);
    Check(limits, "output", spec_.limits.output, kServiceSizeRange);
    Check(limits, "waiters", spec_.limits.waiters, kServiceCountRange);
    Check(limits, "header", spec_.limits.header, kServiceSizeRange);
    Check(limits, "body", spec_.limits.body, kServiceSizeRange);
    Check(limits, "command", spec_.limits.command, kCommandSizeRange);
    Check(limits, "buffers", spec_.limits.buffers, kBuffersRange);
    Check(limits, "idle_timeout", spec_.limits.idle_timeout, kIdleRange);
    Check(limits, "header_timeout", spec_.limits.header_timeout, kClientRange);
    Check(limits, "write_timeout", spec_.limits.write_timeout, kClientRange);
    Check(Where(top_, "memory"), "cap", spec_.memory.cap, kMemoryCapRange);
  }

 private:
  template <typename Value>
  static std::string Text(Value value) {
    if constexpr (std::is_same_v<Value, Duration>) {
      return TextOf(value);
    } else {
      return std::to_string(value);
    }
  }

  template <typename Value>
  void Check(const Where& where, std::string_view key, Value value, const Range<Value>& range) {
    if (range.Has(value)) return;
    problems_.Add(
        ProblemCode::kOutOfRange, Where(where, key),
        Text(value) + " is not allowed; write " + Text(range.least) + " to " + Text(range.most));
  }

  const PolicySpec& spec_;
  ProblemList& problems_;
  const Where top_;
};

void CheckIdentity(const PolicySpec& spec, ProblemList& problems) {
  constexpr std::array<std::string_view, 4> kAttributes = {"user", "api_key", "org", "tier"};
  const Where top;
  const Where identity(top, "identity");
  for (const auto& [attribute, source] : spec.identity) {
    const Where where(identity, attribute);
    if (std::ranges::find(kAttributes, attribute) == kAttributes.end()) {
      problems.Add(ProblemCode::kBadIdentity, where,
                   Quoted(attribute) + " is not found that way; there are user, api_key, org, tier",
                   Where::Point::kKey);
    }
    const bool by_default_only = source.from.empty() && !source.fallback.empty();
    const Result<Attribute> from = ParseAttribute(source.from);
    const bool readable =
        from && (from->kind == AttributeKind::kHeader || from->kind == AttributeKind::kCookie ||
                 from->kind == AttributeKind::kQuery);
    if (!readable && !by_default_only && !problems.HasErrorWithin(where)) {
      problems.Add(ProblemCode::kBadIdentity, where,
                   "write where it comes from: header: NAME, cookie: NAME or query: NAME");
    }
  }
}

// Whether some key is stored as a hash, so that all nodes must agree on the secret.
bool HashesKeys(const PolicySpec& spec) {
  const auto hashed = [](const KeyAttribute& attribute) {
    return attribute.hash || attribute.name == "fingerprint";
  };
  const auto has_hashed = [&](const RuleSpec& rule) {
    return std::ranges::any_of(
        rule.key, [&](const KeyPart& part) { return std::ranges::any_of(part.first_of, hashed); });
  };
  return std::ranges::any_of(spec.identity, [](const auto& entry) { return entry.second.hash; }) ||
         std::ranges::any_of(spec.rules, has_hashed);
}

}  // namespace

void CheckService(const PolicySpec& spec, ProblemList& problems) {
  CheckListeners(spec, problems);
  CheckStores(spec, problems);
  CheckTrust(spec, problems);
  CheckIdentity(spec, problems);
  const Where top;
  if (HasSharedStore(spec) && spec.hash_secret.empty() && HashesKeys(spec)) {
    problems.Add(ProblemCode::kSecretNeeded, Where(top, "store"),
                 "keys are hashed, and every node must hash them alike; write hash_secret: "
                 "env:NAME or file:PATH");
  }
  RangeChecker(spec, problems).Check();
}

}  // namespace weir
