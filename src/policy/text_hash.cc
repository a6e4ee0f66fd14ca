#include "policy/text_hash.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mix.h"

namespace weir {
namespace {

template <typename Word>
std::uint64_t WordAt(const char* at) noexcept {
  Word word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

}  // namespace

std::uint64_t HashOf(std::string_view text) noexcept {
  return XXH3_64bits(text.data(), text.size());
}

std::uint64_t HashOfName(std::string_view name) noexcept {
  constexpr std::uint64_t kLowerCase = 0x2020202020202020;  // And other bytes than letters alike.
  const std::size_t size = name.size();
  if (size == 0) return 0;
  const char* const begin = name.data();
  const char* const end = begin + size;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (size >= 8) {
    first = WordAt<std::uint64_t>(begin);
    last = WordAt<std::uint64_t>(end - 8);
  } else if (size >= 4) {
    first = WordAt<std::uint32_t>(begin);
    last = WordAt<std::uint32_t>(end - 4);
  } else {
    first = WordAt<std::uint8_t>(begin);
    last = WordAt<std::uint8_t>(begin + size / 2) << 8 | WordAt<std::uint8_t>(end - 1);
  }
  return Mix(Mix((first | kLowerCase) + size) ^ (last | kLowerCase));
}

}  // namespace weir
