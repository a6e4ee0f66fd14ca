#include "policy/client_address.h"

#include <algorithm>
#include <utility>

#include "policy/attribute.h"
#include "policy/forwarding_list.h"

namespace weir {
namespace {

bool HasForwardingHeader(std::span<const NamedValue> headers) noexcept {
  return std::ranges::any_of(headers, [](const NamedValue& header) {
    return EqualIgnoringCase(header.name, NameOf(ForwardingHeader::kXForwardedFor)) ||
           EqualIgnoringCase(header.name, NameOf(ForwardingHeader::kForwarded));
  });
}

}  // namespace

ClientAddressFinder::ClientAddressFinder(IpRangeSet trusted, const ClientIpSpec& spec)
    : trusted_(std::move(trusted)), header_(spec.header), hops_(spec.hops) {}

ClientAddressFinder::Found ClientAddressFinder::Find(
    std::optional<IpAddress> peer, std::span<const NamedValue> headers) const noexcept {
  if (!HasProxies()) {
    return {.client = peer, .ignored_forwarding = HasForwardingHeader(headers)};
  }
  if (!IsTrusted(peer)) return {.client = peer};
  return {.client = hops_ > 0 ? Counted(peer, headers) : FirstUntrusted(peer, headers),
          .peer_trusted = true};
}

// Asked only if there are proxies.
bool ClientAddressFinder::IsTrusted(const std::optional<IpAddress>& peer) const noexcept {
  return hops_ > 0 || !peer || trusted_.Contains(*peer);
}

std::optional<IpAddress> ClientAddressFinder::FirstUntrusted(
    std::optional<IpAddress> peer, std::span<const NamedValue> headers) const noexcept {
  std::optional<IpAddress> good = peer;
  ForwardingList list(header_, headers);
  while (IsTrusted(good)) {
    const std::optional<std::string_view> element = list.Next();
    if (!element) break;
    const std::optional<IpAddress> address = AddressIn(header_, *element);
    if (!address) break;
    good = address;
  }
  return good;
}

std::optional<IpAddress> ClientAddressFinder::Counted(
    std::optional<IpAddress> peer, std::span<const NamedValue> headers) const noexcept {
  std::optional<IpAddress> good = peer;
  bool junk = false;
  ForwardingList list(header_, headers);
  for (int i = 0; i < hops_; ++i) {
    // Also behind junk, to see whether there are enough.
    const std::optional<std::string_view> element = list.Next();
    if (!element) return peer;
    if (junk) continue;
    const std::optional<IpAddress> address = AddressIn(header_, *element);
    junk = !address;
    if (address) good = address;
  }
  return good;
}

}  // namespace weir
