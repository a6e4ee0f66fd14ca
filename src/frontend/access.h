// Who may do what on a listener: tokens, and the right to manage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

enum class Right : std::uint8_t {
  kNone,    // Must say who they are first.
  kUse,     // Ask for decisions.
  kManage,  // Refund, penalize, reset, see the top keys.
};

// Immutable, but for being replaced as a whole.
struct Access {
  std::string token{};         // Empty: none is needed.
  std::string manage_token{};  // Empty: `token` manages, too.
  bool manage_open = false;    // On loopback: everybody manages.

  friend bool operator==(const Access&, const Access&) = default;

  // Of those who have said nothing.
  Right WithoutToken() const noexcept;
  // Of those who present a token. Takes equally long for all wrong ones of one length.
  Right WithToken(std::string_view presented) const noexcept;
};

// The token of "Bearer TOKEN"; empty if it is something else.
std::string_view BearerToken(std::string_view authorization) noexcept;

// Looks at every byte whatever it finds, so that the time taken tells nothing about `secret`.
bool IsSameSecret(std::string_view secret, std::string_view presented) noexcept;

}  // namespace weir
