// What a match can be filed under: something that a request must have for it to hold, and that is
// found by a hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/address.h"
#include "policy/attribute.h"
#include "policy/condition.h"
#include "policy/path.h"
#include "policy/text_hash.h"

namespace weir {

struct Anchor {
  enum class Kind : std::uint8_t {
    kValue,        // The attribute has a certain value.
    kPresent,      // The attribute is there.
    kRange,        // The address is in a range.
    kPattern,      // The path may fit a pattern,
    kLastSegment,  // or ends in a certain segment.
  };

  Kind kind;
  // How common it is to come by, from 1. A guess: a method is shared by more requests than a value
  // of a header.
  std::uint32_t weight;
  std::uint64_t key;
  const Condition* condition;
  const PathPattern* pattern = nullptr;  // kPattern.
  const IpRange* range = nullptr;        // kRange.
  const std::string* value = nullptr;    // kValue.
};

// A condition holds only if the request has one of these. None if it has no such thing.
std::vector<Anchor> AnchorsOf(const Condition& condition);

// The keys. Of an attribute, its values and its being there:
std::uint64_t SeedOf(const Attribute& attribute) noexcept;
inline std::uint64_t ValueKey(std::uint64_t seed, std::string_view value) noexcept {
  return seed + HashOf(value);
}
std::uint64_t PresentKey(std::uint64_t seed) noexcept;
// Of ranges of a length, and of a masked address in one of them:
std::uint64_t SeedOfRanges(bool v4, int prefix) noexcept;
std::uint64_t RangeKey(std::uint64_t seed, const IpAddress& masked) noexcept;
// Of the segment that a path ends in.
std::uint64_t LastSegmentKey(std::string_view segment) noexcept;

}  // namespace weir
