// Whether the parts of a policy that are not about rules make sense.
#include <algorithm>
#include <array>
#include <charconv>

#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/policy_compiler.h"

namespace weir {
namespace {

bool IsPort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 0 && port <= 65'535;
}

// 127.0.0.1:8080, [::1]:8080, localhost:8080
bool IsHostAndPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !IsPort(text.substr(colon + 1))) return false;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    return host.ends_with(']') && IpAddress::Parse(host.substr(1, host.size() - 2)).has_value();
  }
  return !host.empty() && host.find_first_of(":/[] ") == std::string_view::npos;
}

void CheckListeners(const PolicySpec& spec, ProblemList& problems) {
  const Where top;
  const Where listen(top, "listen");
  for (const auto& [protocol, listener] : spec.listen) {
    const Where where(listen, protocol);
    const bool known = protocol == "http" || protocol == "resp" || protocol == "grpc";
    if (!known) {
      problems.Add(ProblemCode::kBadListener, where,
                   "unknown protocol " + Quoted(protocol) + "; there are http, resp and grpc");
    }
    const bool is_unix = listener.address.starts_with("unix:/");
    if (!is_unix && !IsHostAndPort(listener.address)) {
      problems.Add(ProblemCode::kBadListener, where,
                   Quoted(listener.address) +
                       " is nothing to listen on; write 127.0.0.1:8080, [::1]:8080 or unix:/path");
    }
    if (listener.tls_certificate.empty() != listener.tls_key.empty()) {
      problems.Add(ProblemCode::kBadListener, Where(where, "tls"),
                   "a certificate and a key go together; write both");
    }
    if (!listener.token.empty() && !listener.token.starts_with("env:") &&
        !listener.token.starts_with("file:")) {
      problems.Add(ProblemCode::kBadSecret, Where(where, "token"),
                   "a token does not belong into a policy; write env:NAME or file:PATH");
    }
  }
}

void CheckStores(const PolicySpec& spec, ProblemList& problems) {
  constexpr std::array<std::string_view, 7> kSchemes = {
      "redis://",          "rediss://",         "redis+unix://",     "redis+cluster://",
      "rediss+cluster://", "redis+sentinel://", "rediss+sentinel://"};
  const Where top;
  const Where store(top, "store");
  for (std::size_t i = 0; i < spec.store.size(); ++i) {
    const std::string& address = spec.store[i];
    const auto fits = [&](std::string_view scheme) {
      return address.starts_with(scheme) && address.size() > scheme.size();
    };
    if (address == "memory" && spec.store.size() == 1) continue;
    if (std::ranges::any_of(kSchemes, fits)) continue;
    problems.Add(ProblemCode::kBadStore, spec.store.size() == 1 ? store : Where(store, i),
                 Quoted(address) +
                     " is no store; write memory, or redis://HOST:PORT, rediss://, "
                     "redis+unix://, redis+cluster:// or redis+sentinel://");
  }
  if (spec.store.empty()) problems.Add(ProblemCode::kBadStore, store, "no store; write memory");
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
  if (spec.client_ip.hops < 0 || spec.client_ip.hops > 32 || spec.client_ip.ipv6_prefix < 16 ||
      spec.client_ip.ipv6_prefix > 128) {
    problems.Add(ProblemCode::kOutOfRange, Where(top, "client_ip"),
                 "hops may be 1 to 32, ipv6_prefix 16 to 128");
  }
}

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
    if (!readable && !by_default_only) {
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
  const bool shared = spec.store != std::vector<std::string>{"memory"};
  if (shared && spec.hash_secret.empty() && HashesKeys(spec)) {
    problems.Add(ProblemCode::kSecretNeeded, Where(top, "store"),
                 "keys are hashed, and every node must hash them alike; write hash_secret: "
                 "env:NAME or file:PATH");
  }
  if (spec.max_wait < Duration(0) || spec.max_wait > kMaxWait) {
    problems.Add(ProblemCode::kOutOfRange, Where(top, "max_wait"),
                 TextOf(spec.max_wait) + " is not allowed; write 0s to " + TextOf(kMaxWait));
  }
}

}  // namespace weir
