#include <weir/identity.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/attribute.h"
#include "policy/blanks.h"
#include "policy/client_address.h"
#include "policy/forwarding_list.h"
#include "policy/request_pairs.h"

namespace weir {

// Where user, api_key, org or tier comes from.
struct AttributeSource {
  std::string_view Request::* field;
  std::optional<Attribute> from;
  bool from_anyone;
  std::string fallback;
};

namespace {

static_assert(IpAddress::kTextSize == 46);  // So much room has the storage, which is public.

struct AttributeField {
  std::string_view name;
  std::string_view Request::* field;
};
constexpr std::array<AttributeField, 4> kIdentityAttributes = {{
    {"user", &Request::user},
    {"api_key", &Request::api_key},
    {"org", &Request::org},
    {"tier", &Request::tier},
}};

std::unexpected<Error> Invalid(std::string message) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
}

Result<IpRangeSet> TrustedBy(const PolicySpec& spec) {
  std::vector<IpRange> ranges;
  for (const std::string& text : spec.trusted_proxies) {
    const std::optional<IpRange> range = IpRange::Parse(text);
    if (!range) {
      return Invalid("trusted_proxies: " + Quoted(text) +
                     " is neither an address nor a range such as 10.0.0.0/8, in which the bits "
                     "behind the prefix are zero");
    }
    ranges.push_back(*range);
  }
  return IpRangeSet(ranges);
}

Result<AttributeSource> SourceOf(const std::string& name, const IdentitySource& source) {
  const auto known = std::ranges::find(kIdentityAttributes, name, &AttributeField::name);
  if (known == kIdentityAttributes.end()) {
    return Invalid("identity: " + Quoted(name) + " is none of user, api_key, org and tier");
  }
  AttributeSource made{known->field, std::nullopt, source.from_anyone, source.fallback};
  if (source.from.empty() && !source.fallback.empty()) return made;
  Result<Attribute> from = ParseAttribute(source.from);
  if (!from || (from->kind != AttributeKind::kHeader && from->kind != AttributeKind::kCookie &&
                from->kind != AttributeKind::kQuery)) {
    return Invalid("identity." + name + ": " + Quoted(source.from) +
                   " is none of header.NAME, cookie.NAME and query.NAME");
  }
  made.from = *std::move(from);
  return made;
}

}  // namespace

struct Identity::Rules {
  ClientAddressFinder finder;
  std::vector<AttributeSource> sources;
  std::function<void(std::string_view)> warn;
  mutable std::atomic<bool> warned = false;
};

// Fills in one request.
class RequestIdentifier {
 public:
  RequestIdentifier(const Identity::Rules& rules, const Incoming& incoming,
                    IdentityStorage& storage)
      : rules_(rules), incoming_(incoming), storage_(storage) {
    storage.cookies_.clear();
    storage.query_.clear();
  }

  Request Identify() {
    request_ = {.method = incoming_.method,
                .path = incoming_.path,
                .host = incoming_.host,
                .headers = incoming_.headers,
                .trusted = false};
    FindClient();
    ReadHeaders();
    ReadQuery();
    request_.cookies = storage_.cookies_;
    request_.query = storage_.query_;
    for (std::size_t i = 0; i < rules_.sources.size(); ++i) {
      const AttributeSource& source = rules_.sources[i];
      const std::string_view value = said_[i].ambiguous ? "" : said_[i].value;
      request_.*source.field = value.empty() ? source.fallback : value;
    }
    return request_;
  }

 private:
  // What was found for a source.
  struct Said {
    bool anything = false;
    bool ambiguous = false;
    std::string_view value{};
  };

  void FindClient() {
    std::optional<IpAddress> peer;
    if (!incoming_.peer.empty()) {
      peer = IpAddress::ParseForwarded(incoming_.peer);
      if (!peer) return;
    }
    const ClientAddressFinder::Found found = rules_.finder.Find(peer, incoming_.headers);
    if (found.client) request_.ip = found.client->ToText(storage_.ip_);
    request_.trusted = found.peer_trusted;
    if (found.ignored_forwarding && !rules_.warned.load(std::memory_order_relaxed)) Warn(peer);
  }

  void Warn(const std::optional<IpAddress>& peer) {
    if (rules_.warned.exchange(true) || !rules_.warn) return;
    const std::string proxy = peer ? peer->ToString() : "127.0.0.1";
    const std::string whence = peer ? proxy : "a unix socket";
    const bool old_style = std::ranges::any_of(incoming_.headers, [](const NamedValue& header) {
      return EqualIgnoringCase(header.name, NameOf(ForwardingHeader::kXForwardedFor));
    });
    rules_.warn("a request from " + whence + " carries " +
                (old_style ? "X-Forwarded-For" : "Forwarded") +
                ", but the policy trusts no proxy: until it does, the header is ignored and the "
                "address of the peer counts as the client's. If a proxy of yours sent it, write "
                "trusted_proxies: [" +
                proxy + "]" + (old_style ? "" : " and client_ip: {header: forwarded}"));
  }

  void ReadHeaders() {
    for (const NamedValue& header : incoming_.headers) {
      Offer(AttributeKind::kHeader, {header.name, WithoutBlanks(header.value)});
      if (!EqualIgnoringCase(header.name, "cookie")) continue;
      CookieReader cookies(header.value);
      while (const std::optional<NamedValue> cookie = cookies.Next()) {
        if (storage_.cookies_.size() < Identity::kMostPairs) storage_.cookies_.push_back(*cookie);
        Offer(AttributeKind::kCookie, *cookie);
      }
    }
  }

  void ReadQuery() {
    const std::string_view query = QueryOf(incoming_.path);
    std::string& decoded = storage_.decoded_;
    if (QueryReader::NeedsBuffer(query) && decoded.size() < query.size()) {
      decoded.resize(query.size());
    }
    QueryReader pairs(query, decoded);
    while (const std::optional<NamedValue> pair = pairs.Next()) {
      if (storage_.query_.size() < Identity::kMostPairs) storage_.query_.push_back(*pair);
      Offer(AttributeKind::kQuery, *pair);
    }
  }

  void Offer(AttributeKind kind, const NamedValue& pair) noexcept {
    for (std::size_t i = 0; i < rules_.sources.size(); ++i) {
      const AttributeSource& source = rules_.sources[i];
      if (!source.from || source.from->kind != kind) continue;
      if (!request_.trusted && !source.from_anyone) continue;
      const bool same_name = kind == AttributeKind::kHeader
                                 ? EqualIgnoringCase(pair.name, source.from->name)
                                 : pair.name == source.from->name;
      if (!same_name) continue;
      Said& said = said_[i];
      if (said.anything && said.value != pair.value) said.ambiguous = true;
      said.anything = true;
      said.value = pair.value;
    }
  }

  const Identity::Rules& rules_;
  const Incoming& incoming_;
  IdentityStorage& storage_;
  Request request_;
  std::array<Said, kIdentityAttributes.size()> said_{};
};

Result<Identity> Identity::Make(const PolicySpec& spec, IdentityOptions options) {
  Result<IpRangeSet> trusted = TrustedBy(spec);
  if (!trusted) return std::unexpected(std::move(trusted.error()));
  const int hops = spec.client_ip.hops;
  if (hops < 0 || std::cmp_greater(hops, ForwardingList::kMostElements)) {
    return Invalid("client_ip.hops is " + std::to_string(hops) + "; write 0 to " +
                   std::to_string(ForwardingList::kMostElements));
  }
  if (hops > 0 && !trusted->empty()) {
    return Invalid(
        "client_ip.hops and trusted_proxies are both set; name the proxies or count them");
  }
  std::vector<AttributeSource> sources;
  for (const auto& [name, given] : spec.identity) {
    Result<AttributeSource> source = SourceOf(name, given);
    if (!source) return std::unexpected(std::move(source.error()));
    sources.push_back(*std::move(source));
  }
  return Identity(std::shared_ptr<const Rules>(
      new Rules{.finder = ClientAddressFinder(*std::move(trusted), spec.client_ip),
                .sources = std::move(sources),
                .warn = std::move(options.warn)}));
}

Request Identity::Identify(const Incoming& incoming, IdentityStorage& storage) const {
  return RequestIdentifier(*rules_, incoming, storage).Identify();
}

bool Identity::Trusts(std::string_view peer) const noexcept {
  if (peer.empty()) return rules_->finder.Trusts(std::nullopt);
  const std::optional<IpAddress> address = IpAddress::ParseForwarded(peer);
  return address && rules_->finder.Trusts(address);
}

}  // namespace weir
