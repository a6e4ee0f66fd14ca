#include "policy/anchor.h"

#include <algorithm>

#include "base/mix.h"
#include "policy/text_hash.h"

namespace weir {
namespace {

using AnchorKind = Anchor::Kind;
using SegmentKind = PathPattern::SegmentKind;

constexpr std::uint32_t kRare = 1;
constexpr std::uint32_t kShared = 2;
constexpr std::uint32_t kFewValues = 4;  // There are few values of it.
constexpr std::uint32_t kCommon = 16;

// Keeps the kinds of keys apart.
enum class Space : std::uint64_t { kAttribute = 1, kRange, kLastSegment, kPattern };
constexpr std::uint64_t SeedIn(Space space, std::uint64_t number) {
  return Mix((static_cast<std::uint64_t>(space) << 32) + number);
}

std::uint32_t WeightOfValue(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kMethod:
    case AttributeKind::kTier:
    case AttributeKind::kDomain:
      return kFewValues;
    case AttributeKind::kHost:
    case AttributeKind::kOrg:
      return kShared;
    default:
      return kRare;
  }
}

Anchor PresentAnchor(const Condition& condition) {
  return {.kind = AnchorKind::kPresent,
          .weight = kCommon,
          .key = PresentKey(SeedOf(condition.attribute())),
          .condition = &condition};
}

Anchor RangeAnchor(const Condition& condition, const IpRange& range) {
  const std::uint64_t seed = SeedOfRanges(range.base.is_v4(), range.prefix);
  return {.kind = AnchorKind::kRange,
          .weight = range.prefix == 0 ? kCommon : kShared,
          .key = RangeKey(seed, range.base),
          .condition = &condition,
          .range = &range};
}

Anchor PatternAnchor(const Condition& condition, const PathPattern& pattern) {
  const auto& segments = pattern.segments();
  const auto rest =
      std::ranges::find(segments, SegmentKind::kRest, &PathPattern::PatternSegment::kind);
  // The same for patterns that end at the same place of the trie.
  std::uint64_t key = SeedIn(Space::kPattern, rest == segments.end() ? 0 : 1);
  bool literal = false;
  for (auto segment = segments.begin(); segment != rest; ++segment) {
    literal = literal || segment->kind == SegmentKind::kLiteral;
    key = Mix(key + (segment->kind == SegmentKind::kLiteral ? HashOf(segment->text) : 1));
  }
  if (!literal && rest != segments.end() && segments.back().kind == SegmentKind::kLiteral) {
    return {.kind = AnchorKind::kLastSegment,
            .weight = kShared,
            .key = LastSegmentKey(segments.back().text),
            .condition = &condition};
  }
  return {.kind = AnchorKind::kPattern,
          .weight = literal ? kShared : kCommon,
          .key = key,
          .condition = &condition,
          .pattern = &pattern};
}

}  // namespace

std::vector<Anchor> AnchorsOf(const Condition& condition) {
  if (!condition.NeedsAttribute()) return {};
  if (condition.asks() == Condition::Asks::kPresent || !condition.globs().empty()) {
    return {PresentAnchor(condition)};
  }
  std::vector<Anchor> anchors;
  const std::uint64_t seed = SeedOf(condition.attribute());
  for (const std::string& value : condition.literals()) {
    anchors.push_back({.kind = AnchorKind::kValue,
                       .weight = WeightOfValue(condition.attribute().kind),
                       .key = ValueKey(seed, value),
                       .condition = &condition,
                       .value = &value});
  }
  for (const PathPattern& pattern : condition.patterns()) {
    anchors.push_back(PatternAnchor(condition, pattern));
  }
  for (const IpRange& range : condition.ranges()) anchors.push_back(RangeAnchor(condition, range));
  return anchors;
}

std::uint64_t SeedOf(const Attribute& attribute) noexcept {
  const std::uint64_t of_kind =
      SeedIn(Space::kAttribute, static_cast<std::uint64_t>(attribute.kind));
  return attribute.name.empty() ? of_kind : of_kind + HashOf(attribute.name);
}

std::uint64_t PresentKey(std::uint64_t seed) noexcept { return Mix(seed); }

std::uint64_t SeedOfRanges(bool v4, int prefix) noexcept {
  return SeedIn(Space::kRange, static_cast<std::uint64_t>(prefix) * 2 + (v4 ? 1 : 0));
}

std::uint64_t RangeKey(std::uint64_t seed, const IpAddress& masked) noexcept {
  const auto& bytes = masked.bytes();
  return seed + HashOf({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::uint64_t LastSegmentKey(std::string_view segment) noexcept {
  return SeedIn(Space::kLastSegment, 0) + HashOf(segment);
}

}  // namespace weir
