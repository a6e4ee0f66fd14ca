// The outermost map of a policy file, and everything in it that is not about rules.
#include "policy/policy_reader.h"

#include <utility>

#include "limit/limit_words.h"

namespace weir {
namespace {

// Values under names that the file chooses.
template <typename Value, typename Read>
void ReadNamed(SpecReader& reader, const Spot& spot, std::map<std::string, Value>& values,
               Read&& read) {
  if (!reader.IsMap(spot)) return;
  for (const YamlNode::Entry& entry : spot.node.entries) {
    const Where where(spot.where, entry.key);
    read(Spot{entry.value, where}, values[entry.key]);
  }
}

// `header: x-user-id` and so on: where a value comes from, as the name of an attribute.
template <std::size_t place>
void ReadSource(SpecReader& reader, const Spot& spot, IdentitySource& source) {
  std::string name;
  if (!reader.ReadText(spot, name)) return;
  if (!source.from.empty()) {
    return reader.Report(ProblemCode::kBadIdentity, spot.where,
                         "it comes from " + Quoted(source.from) + " already; keep one of the two");
  }
  source.from = std::string(kNamedPlaces[place]) + "." + name;
}

constexpr std::array<Field<IdentitySource>, 6> kIdentityFields = {{
    {"header", ReadSource<0>},
    {"cookie", ReadSource<1>},
    {"query", ReadSource<2>},
    {"from", [](SpecReader& reader, const Spot& spot,
                IdentitySource& source) { reader.ReadWord(spot, kBelieved, source.from_anyone); }},
    {"hash", [](SpecReader& reader, const Spot& spot,
                IdentitySource& source) { reader.ReadBool(spot, source.hash); }},
    {"default", [](SpecReader& reader, const Spot& spot,
                   IdentitySource& source) { reader.ReadText(spot, source.fallback); }},
}};

constexpr std::array<Field<ClientIpSpec>, 3> kClientIpFields = {{
    {"header", [](SpecReader& reader, const Spot& spot,
                  ClientIpSpec& spec) { reader.ReadWord(spot, kForwardingHeaders, spec.header); }},
    {"hops", [](SpecReader& reader, const Spot& spot,
                ClientIpSpec& spec) { reader.ReadInt(spot, spec.hops, kHopRange); }},
    {"ipv6_prefix",
     [](SpecReader& reader, const Spot& spot, ClientIpSpec& spec) {
       reader.ReadInt(spot, spec.ipv6_prefix, kDefaultIpv6PrefixRange);
     }},
}};

constexpr std::array<Field<ListenerSpec>, 3> kTlsFields = {{
    {"certificate",
     [](SpecReader& reader, const Spot& spot, ListenerSpec& listener) {
       reader.ReadText(spot, listener.tls_certificate);
     }},
    {"key", [](SpecReader& reader, const Spot& spot,
               ListenerSpec& listener) { reader.ReadText(spot, listener.tls_key); }},
    {"client_ca", [](SpecReader& reader, const Spot& spot,
                     ListenerSpec& listener) { reader.ReadText(spot, listener.tls_client_ca); }},
}};

constexpr std::array<Field<ListenerSpec>, 4> kListenerFields = {{
    {"address", [](SpecReader& reader, const Spot& spot,
                   ListenerSpec& listener) { reader.ReadText(spot, listener.address); }},
    {"tls", [](SpecReader& reader, const Spot& spot,
               ListenerSpec& listener) { reader.ReadMap(spot, kTlsFields, listener); }},
    {"token", [](SpecReader& reader, const Spot& spot,
                 ListenerSpec& listener) { reader.ReadText(spot, listener.token); }},
    {"manage_token", [](SpecReader& reader, const Spot& spot,
                        ListenerSpec& listener) { reader.ReadText(spot, listener.manage_token); }},
}};

void ReadListener(SpecReader& reader, const Spot& spot, ListenerSpec& listener) {
  if (spot.node.kind == YamlNode::Kind::kScalar) {
    reader.ReadText(spot, listener.address);
  } else {
    reader.ReadMap(spot, kListenerFields, listener);
  }
}

using Listeners = std::map<std::string, ListenerSpec>;

template <std::size_t protocol>
void ReadProtocol(SpecReader& reader, const Spot& spot, Listeners& listeners) {
  constexpr std::array<const char*, 3> kProtocols = {"http", "resp", "grpc"};
  ReadListener(reader, spot, listeners[kProtocols[protocol]]);
}
constexpr std::array<Field<Listeners>, 3> kListenFields = {{
    {"http", ReadProtocol<0>},
    {"resp", ReadProtocol<1>},
    {"grpc", ReadProtocol<2>},
}};

constexpr std::array<Field<RedisSpec>, 4> kRedisFields = {{
    {"connect_timeout",
     [](SpecReader& reader, const Spot& spot, RedisSpec& redis) {
       reader.ReadLength(spot, redis.connect_timeout, kTimeoutRange);
     }},
    {"timeout", [](SpecReader& reader, const Spot& spot,
                   RedisSpec& redis) { reader.ReadLength(spot, redis.timeout, kTimeoutRange); }},
    {"connections",
     [](SpecReader& reader, const Spot& spot, RedisSpec& redis) {
       reader.ReadInt(spot, redis.connections, kConnectionRange);
     }},
    {"max_in_flight",
     [](SpecReader& reader, const Spot& spot, RedisSpec& redis) {
       reader.ReadInt(spot, redis.max_in_flight, kInFlightRange);
     }},
}};

template <std::int64_t ServiceLimits::* member>
void ReadServiceCount(SpecReader& reader, const Spot& spot, ServiceLimits& limits) {
  reader.ReadCount(spot, limits.*member, kServiceCountRange);
}
template <std::int64_t ServiceLimits::* member, const Range<std::int64_t>& range>
void ReadServiceSize(SpecReader& reader, const Spot& spot, ServiceLimits& limits) {
  reader.ReadSize(spot, limits.*member, range);
}
template <Duration ServiceLimits::* member, const Range<Duration>& range>
void ReadServiceLength(SpecReader& reader, const Spot& spot, ServiceLimits& limits) {
  reader.ReadLength(spot, limits.*member, range);
}
constexpr std::array<Field<ServiceLimits>, 12> kServiceLimitFields = {{
    {"connections", ReadServiceCount<&ServiceLimits::connections>},
    {"per_address", ReadServiceCount<&ServiceLimits::per_address>},
    {"pipeline", ReadServiceCount<&ServiceLimits::pipeline>},
    {"output", ReadServiceSize<&ServiceLimits::output, kServiceSizeRange>},
    {"waiters", ReadServiceCount<&ServiceLimits::waiters>},
    {"header", ReadServiceSize<&ServiceLimits::header, kServiceSizeRange>},
    {"body", ReadServiceSize<&ServiceLimits::body, kServiceSizeRange>},
    {"command", ReadServiceSize<&ServiceLimits::command, kCommandSizeRange>},
    {"buffers", ReadServiceSize<&ServiceLimits::buffers, kBuffersRange>},
    {"idle_timeout", ReadServiceLength<&ServiceLimits::idle_timeout, kIdleRange>},
    {"header_timeout", ReadServiceLength<&ServiceLimits::header_timeout, kClientRange>},
    {"write_timeout", ReadServiceLength<&ServiceLimits::write_timeout, kClientRange>},
}};

constexpr std::array<Field<MemorySpec>, 2> kMemoryFields = {{
    {"cap", [](SpecReader& reader, const Spot& spot,
               MemorySpec& memory) { reader.ReadSize(spot, memory.cap, kMemoryCapRange); }},
    {"snapshot", [](SpecReader& reader, const Spot& spot,
                    MemorySpec& memory) { reader.ReadText(spot, memory.snapshot); }},
}};

void ReadRules(SpecReader& reader, const Spot& spot, PolicySpec& policy) {
  if (spot.node.kind == YamlNode::Kind::kNull) return;
  if (spot.node.kind != YamlNode::Kind::kList) {
    reader.Report(ProblemCode::kWrongType, spot.where,
                  "found " + Describe(spot.node) + ", expected a list of rules: - name: ...");
    return;
  }
  reader.ReadEach(spot,
                  [&](const Spot& item) { ReadRule(reader, item, policy.rules.emplace_back()); });
}

void ReadTier(SpecReader& reader, const Spot& spot, TierSpec& tier) {
  ReadNamed(reader, spot, tier,
            [&](const Spot& limit, std::string& text) { reader.ReadText(limit, text); });
}

constexpr std::array<Field<PolicySpec>, 21> kPolicyFields = {{
    {"store", [](SpecReader& reader, const Spot& spot,
                 PolicySpec& policy) { reader.ReadTexts(spot, policy.store); }},
    {"listen", [](SpecReader& reader, const Spot& spot,
                  PolicySpec& policy) { reader.ReadMap(spot, kListenFields, policy.listen); }},
    {"trusted_proxies", [](SpecReader& reader, const Spot& spot,
                           PolicySpec& policy) { reader.ReadTexts(spot, policy.trusted_proxies); }},
    {"identity",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       ReadNamed(reader, spot, policy.identity, [&](const Spot& item, IdentitySource& source) {
         reader.ReadMap(item, kIdentityFields, source);
       });
     }},
    {"client_ip",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       reader.ReadMap(spot, kClientIpFields, policy.client_ip);
     }},
    {"hash_secret", [](SpecReader& reader, const Spot& spot,
                       PolicySpec& policy) { reader.ReadText(spot, policy.hash_secret); }},
    {"headers",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       policy.headers.clear();
       reader.ReadEach(spot, [&](const Spot& item) {
         reader.ReadWord(item, kHeaderFamilies, policy.headers.emplace_back());
       });
     }},
    {"reset", [](SpecReader& reader, const Spot& spot,
                 PolicySpec& policy) { reader.ReadWord(spot, kResetStyles, policy.reset); }},
    {"on_store_failure",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       reader.ReadWord(spot, kFailureModes, policy.on_store_failure);
     }},
    {"fleet_size",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       reader.ReadInt(spot, policy.fleet_size, kFleetRange);
     }},
    {"max_wait", [](SpecReader& reader, const Spot& spot,
                    PolicySpec& policy) { reader.ReadLength(spot, policy.max_wait, kWaitRange); }},
    {"queue_hold",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       reader.ReadLength(spot, policy.queue_hold.emplace(), kWaitRange);
     }},
    {"manage", [](SpecReader& reader, const Spot& spot,
                  PolicySpec& policy) { reader.ReadWord(spot, kManageRights, policy.manage); }},
    {"redis", [](SpecReader& reader, const Spot& spot,
                 PolicySpec& policy) { reader.ReadMap(spot, kRedisFields, policy.redis); }},
    {"limits",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       reader.ReadMap(spot, kServiceLimitFields, policy.limits);
     }},
    {"memory", [](SpecReader& reader, const Spot& spot,
                  PolicySpec& policy) { reader.ReadMap(spot, kMemoryFields, policy.memory); }},
    {"unidentified",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       reader.ReadWord(spot, kUnidentifiedWords, policy.unidentified);
     }},
    {"allow", [](SpecReader& reader, const Spot& spot,
                 PolicySpec& policy) { ReadMatches(reader, spot, policy.allow); }},
    {"deny", [](SpecReader& reader, const Spot& spot,
                PolicySpec& policy) { ReadMatches(reader, spot, policy.deny); }},
    {"tiers",
     [](SpecReader& reader, const Spot& spot, PolicySpec& policy) {
       ReadNamed(reader, spot, policy.tiers,
                 [&](const Spot& item, TierSpec& tier) { ReadTier(reader, item, tier); });
     }},
    {"rules", ReadRules},
}};

}  // namespace

PolicySpec ReadPolicy(const YamlNode& root, ProblemList& problems) {
  PolicySpec policy;
  SpecReader reader(problems);
  const Where top;
  reader.ReadMap({root, top}, kPolicyFields, policy);
  return policy;
}

std::vector<KeysOfMap> AllPolicyKeys() {
  std::vector<KeysOfMap> all = {
      KeysOf("policy", kPolicyFields),      KeysOf("identity", kIdentityFields),
      KeysOf("client_ip", kClientIpFields), KeysOf("listen", kListenFields),
      KeysOf("listener", kListenerFields),  KeysOf("tls", kTlsFields),
      KeysOf("redis", kRedisFields),        KeysOf("limits", kServiceLimitFields),
      KeysOf("memory", kMemoryFields),
  };
  for (KeysOfMap& keys : AllRuleKeys()) all.push_back(std::move(keys));
  return all;
}

}  // namespace weir
