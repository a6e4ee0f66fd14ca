// Where a service listens, or what it connects to: 127.0.0.1:8080, [::1]:8080, localhost:8080 or
// unix:/path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <weir/result.h>

namespace weir {

struct Endpoint {
  [[nodiscard]] static Result<Endpoint> Parse(std::string_view text);

  bool is_unix() const noexcept { return !path.empty(); }
  // As Parse reads it.
  std::string ToString() const;

  std::string host{};  // A name or an address, without brackets.
  std::uint16_t port = 0;
  std::string path{};  // Of a unix socket; then there is neither of the others.
};

}  // namespace weir
