#include "net/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace weir {
namespace {

SocketAddress OfUnix(const std::string& path) {
  SocketAddress made;
  auto& address = reinterpret_cast<sockaddr_un&>(made.storage);
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  made.size = sizeof(sockaddr_un);
  return made;
}

Result<std::vector<SocketAddress>> GetAddresses(const Endpoint& endpoint, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int error = getaddrinfo(endpoint.host.c_str(), port.c_str(), &wanted, &first);
  if (error != 0) {
    return std::unexpected(Error{ErrorCode::kInternal, error == EAI_SYSTEM
                                                           ? std::generic_category().message(errno)
                                                           : gai_strerror(error)});
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* found = first; found != nullptr; found = found->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
    address.size = found->ai_addrlen;
  }
  freeaddrinfo(first);
  return addresses;
}

}  // namespace

std::string SocketAddress::ToText() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    }
  }
  return text.data();
}

std::optional<SocketAddress> AddressWithoutLookup(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return OfUnix(endpoint.path);
  const Result<std::vector<SocketAddress>> found = GetAddresses(endpoint, AI_NUMERICHOST);
  if (!found || found->empty()) return std::nullopt;
  return found->front();
}

Result<std::vector<SocketAddress>> LookUpNow(const Endpoint& endpoint) {
  return GetAddresses(endpoint, 0);
}

}  // namespace weir
