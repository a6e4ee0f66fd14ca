#include "net/endpoint.h"

#include <charconv>

namespace weir {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kLongestPath = 107;  // What a socket's address has room for.

std::unexpected<Error> Wrong(std::string_view text) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument,
                               '"' + std::string(text) +
                                   "\" is no address; write 127.0.0.1:8080, [::1]:8080 or "
                                   "unix:/path"});
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with(kUnix)) {
    endpoint.path = text.substr(kUnix.size());
    const bool fits = endpoint.path.starts_with('/') && endpoint.path.size() <= kLongestPath;
    if (!fits) return Wrong(text);
    return endpoint;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Wrong(text);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc() || end != port.data() + port.size()) return Wrong(text);
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find_first_of(":[]") != std::string_view::npos)) {
    return Wrong(text);
  }
  endpoint.host = host;
  return endpoint;
}

std::string Endpoint::ToString() const {
  if (is_unix()) return std::string(kUnix) + path;
  const bool v6 = host.contains(':');
  return (v6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

}  // namespace weir
