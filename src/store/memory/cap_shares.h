// How a cap in bytes is shared out when the parts of a store have to get along with less.
#pragma once

#include <cstddef>
#include <span>

namespace weir {

// What a part has and what it needs, in bytes.
struct PartUse {
  std::size_t used = 0;
  std::size_t needed = 0;  // To forget nobody.
  std::size_t least = 0;   // It cannot do with less.
  std::size_t kept = 0;    // What it may keep: no more than it has, as ShareOut works out.
};

// Fills in `kept` such that all fit into `cap` together, each counted as `assured` at the least,
// for that is set aside for it. First everybody gives up what nobody needs; if that is not enough,
// all give up what they need in proportion, but for what they are assured.
void ShareOut(std::size_t cap, std::size_t assured, std::span<PartUse> parts) noexcept;

}  // namespace weir
