// Blanks around the parts of a header: HTTP knows the space and the tab, and nothing else.
#pragma once

#include <string_view>

namespace weir {

constexpr bool IsBlank(char c) noexcept { return c == ' ' || c == '\t'; }

constexpr std::string_view WithoutBlanks(std::string_view text) noexcept {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace weir
