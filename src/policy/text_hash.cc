#include "policy/text_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

namespace weir {

std::uint64_t HashOfLong(std::string_view text) noexcept {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace weir
