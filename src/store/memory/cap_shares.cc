#include "store/memory/cap_shares.h"

#include <algorithm>

namespace weir {

void ShareOut(std::size_t cap, std::size_t assured, std::span<PartUse> parts) noexcept {
  // A part from which nothing is taken, one that has just what it needs, and one as it is.
  const auto base = [&](const PartUse& part) { return std::max(assured, part.least); };
  const auto whole = [&](const PartUse& part) { return std::max(part.used, base(part)); };
  const auto needy = [&](const PartUse& part) {
    return std::clamp(part.needed, base(part), whole(part));
  };
  const auto sum = [&](const auto& of) {
    std::size_t total = 0;
    for (const PartUse& part : parts) total += of(part);
    return total;
  };
  // Everybody has `low`, and of what `high` is above it as much as there is room for.
  const auto fill = [&](const auto& low, const auto& high) {
    const std::size_t lowest = sum(low);
    const std::size_t wished = sum(high) - lowest;
    const std::size_t room = std::min(wished, cap > lowest ? cap - lowest : 0);
    for (PartUse& part : parts) {
      __extension__ using Wide = unsigned __int128;
      const Wide more = static_cast<Wide>(high(part) - low(part)) * room;
      const std::size_t its = wished == 0 ? 0 : static_cast<std::size_t>(more / wished);
      part.kept = std::min(part.used, low(part) + its);
    }
  };
  if (sum(needy) <= cap) {
    fill(needy, whole);
  } else {
    fill(base, needy);
  }
}

}  // namespace weir
