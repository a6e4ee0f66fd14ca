// Hashes by which the index of matches finds texts. Without a secret: what they find is always
// compared with the text itself afterwards.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

std::uint64_t HashOf(std::string_view text) noexcept;

// The same for names that differ in case only, and for some others. Takes the same time however
// long the name is.
std::uint64_t HashOfName(std::string_view name) noexcept;

}  // namespace weir
