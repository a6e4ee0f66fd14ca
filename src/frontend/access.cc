#include "frontend/access.h"

#include <cstddef>

namespace weir {

std::string_view BearerToken(std::string_view authorization) noexcept {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    const char c = authorization[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  return authorization;
}

bool IsSameSecret(std::string_view secret, std::string_view presented) noexcept {
  // The time goes by what was presented, which the one who measures knows anyway. Volatile, so
  // that no compiler sees that the rest does not matter once a byte differs.
  volatile unsigned char difference = secret.size() == presented.size() ? 0 : 1;
  for (std::size_t i = 0; i < presented.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference =
        static_cast<unsigned char>(difference | (static_cast<unsigned char>(expected) ^
                                                 static_cast<unsigned char>(presented[i])));
  }
  return difference == 0;
}

Right Access::WithoutToken() const noexcept {
  if (!token.empty()) return Right::kNone;
  return manage_open ? Right::kManage : Right::kUse;
}

Right Access::WithToken(std::string_view presented) const noexcept {
  // Both are compared whatever the first says.
  const bool manages = IsSameSecret(manage_token, presented) && !manage_token.empty();
  const bool uses = IsSameSecret(token, presented) && !token.empty();
  if (manages) return Right::kManage;
  if (!uses) return Right::kNone;
  return manage_token.empty() || manage_open ? Right::kManage : Right::kUse;
}

}  // namespace weir
