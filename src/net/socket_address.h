// Addresses as the system has them.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include <weir/result.h>

#include "net/endpoint.h"

namespace weir {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  int family() const noexcept { return storage.ss_family; }
  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  // Without the port: 203.0.113.9, 2001:db8::1; empty for a unix socket.
  std::string ToText() const;
};

// Of a unix socket, or of a host that is given by its address; none if it has a name, which would
// have to be looked up.
std::optional<SocketAddress> AddressWithoutLookup(const Endpoint& endpoint);

// All addresses of a host, the best first. Blocks, for seconds if a name server does not answer.
[[nodiscard]] Result<std::vector<SocketAddress>> LookUpNow(const Endpoint& endpoint);

}  // namespace weir
