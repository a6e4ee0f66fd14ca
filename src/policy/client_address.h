// Who sent a request that came through proxies.
//
// Each proxy adds the address it saw to the right end of a list in a header; everything to the left
// of what our own proxies wrote is whatever the client chose to write. So the list is read from the
// right, and no further than somebody trustworthy wrote it:
//
//   proxies named    While the address at hand is a trusted one, the next element to the left takes
//                    its place. It starts with the socket's peer; the first that is not trusted is
//                    the client, and so is the leftmost if all are.
//   proxies counted  With N of them, of which the peer is the last, the client is the Nth element
//                    from the right; the peer, if there are not so many.
//
// An element that is no address (junk, empty, `unknown`, a made-up name) is never skipped: the last
// good address before it counts. So does that of the last element that is read, when a list is
// longer than anybody's path. Only the header that the policy names is looked at, because the
// client can send the other one and no proxy would overwrite it.
#pragma once

#include <optional>
#include <span>

#include <weir/policy_spec.h>
#include <weir/request.h>

#include "policy/address.h"

namespace weir {

// Immutable once made; safe to share.
class ClientAddressFinder {
 public:
  // Proxies are counted if spec.hops is above 0, else those in `trusted` are named.
  ClientAddressFinder(IpRangeSet trusted, const ClientIpSpec& spec);

  struct Found {
    std::optional<IpAddress> client;
    bool peer_trusted = false;
    // There is a forwarding header, of either kind, and nobody has been named or counted who may
    // send one: probably a proxy that the policy does not know of.
    bool ignored_forwarding = false;
  };

  // `peer` is the other end of the socket. That of a unix socket has no address and is on this
  // machine, let in by the file's permissions; it is taken for one of the proxies if there are any.
  // Where it is the last good address, the client's is not known.
  Found Find(std::optional<IpAddress> peer, std::span<const NamedValue> headers) const noexcept;
  // What `peer_trusted` will be.
  bool Trusts(const std::optional<IpAddress>& peer) const noexcept {
    return HasProxies() && IsTrusted(peer);
  }

 private:
  bool HasProxies() const noexcept { return hops_ > 0 || !trusted_.empty(); }
  bool IsTrusted(const std::optional<IpAddress>& peer) const noexcept;
  std::optional<IpAddress> FirstUntrusted(std::optional<IpAddress> peer,
                                          std::span<const NamedValue> headers) const noexcept;
  std::optional<IpAddress> Counted(std::optional<IpAddress> peer,
                                   std::span<const NamedValue> headers) const noexcept;

  IpRangeSet trusted_;
  ForwardingHeader header_;
  int hops_;
};

}  // namespace weir
