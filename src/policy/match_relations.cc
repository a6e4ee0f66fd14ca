// What follows from matches without a request: which covers which, what they guarantee, and which
// contradict themselves. All of it is for advice, so where the answer would take real effort it is
// the harmless one.
#include <algorithm>

#include "policy/compiled_match.h"

namespace weir {
namespace {

using Asks = Condition::Asks;
using SegmentKind = PathPattern::SegmentKind;

bool Overlap(const IpRange& a, const IpRange& b) {
  return a.Contains(b.base) || b.Contains(a.base);
}

bool Contains(const IpRange& wide, const IpRange& narrow) {
  return wide.prefix <= narrow.prefix && wide.Contains(narrow.base);
}

// Whether some path may fit both, as far as the segments before a `**` tell.
bool MayMeet(const PathPattern& a, const PathPattern& b) {
  auto left = a.segments().begin();
  auto right = b.segments().begin();
  for (;; ++left, ++right) {
    const bool left_ends = left == a.segments().end();
    const bool right_ends = right == b.segments().end();
    if ((!left_ends && left->kind == SegmentKind::kRest) ||
        (!right_ends && right->kind == SegmentKind::kRest)) {
      return true;
    }
    if (left_ends || right_ends) return left_ends && right_ends;
    if (left->kind == SegmentKind::kLiteral && right->kind == SegmentKind::kLiteral &&
        *left != *right) {
      return false;
    }
  }
}

// Whether something that must hold for the match satisfies `says`: one of its conditions, or one
// in every alternative.
template <typename Says>  // bool(const Condition&)
bool Ensures(const CompiledMatch& match, const Says& says) {
  const auto ensures = [&](const CompiledMatch& part) { return Ensures(part, says); };
  return std::ranges::any_of(match.conditions(), says) ||
         std::ranges::any_of(match.all(), ensures) ||
         (!match.any().empty() && std::ranges::all_of(match.any(), ensures));
}

// Whether `says` is true of the match or of one that must hold with it.
template <typename Says>  // bool(const CompiledMatch&)
bool AnyPart(const CompiledMatch& match, const Says& says) {
  return says(match) || std::ranges::any_of(match.all(), [&](const CompiledMatch& part) {
           return AnyPart(part, says);
         });
}

// Gathers the conditions that must hold together until two of them cannot.
class ContradictionFinder {
 public:
  std::string Find(const CompiledMatch& match) {
    for (const Condition& condition : match.conditions()) {
      for (const Condition* other : conditions_) {
        if (std::string why = other->WhyNeverWith(condition); !why.empty()) return why;
      }
      conditions_.push_back(&condition);
    }
    for (const CompiledMatch& part : match.all()) {
      if (std::string why = Find(part); !why.empty()) return why;
    }
    if (std::string why = FindInAlternatives(match.any()); !why.empty()) return why;
    for (const CompiledMatch& part : match.none()) {
      if (part.Covers(match)) return "what is excluded by \"not\" holds whenever the rest does";
    }
    return {};
  }

 private:
  std::string FindInAlternatives(const std::vector<CompiledMatch>& alternatives) const {
    std::string first;
    for (const CompiledMatch& part : alternatives) {
      std::string why = ContradictionFinder(*this).Find(part);
      if (why.empty()) return {};
      if (first.empty()) first = std::move(why);
    }
    return first.empty() ? "" : "no alternative in \"any\" can hold: " + first;
  }

  std::vector<const Condition*> conditions_;
};

}  // namespace

bool Condition::ListsAllOf(const Condition& other) const {
  return std::ranges::all_of(other.literals_, [&](const auto& text) { return Lists(text); }) &&
         std::ranges::all_of(other.globs_,
                             [&](const std::string& narrow) {
                               return std::ranges::any_of(globs_, [&](const std::string& wide) {
                                 // A star of the narrow one can only be taken by one of the wide.
                                 return FitsGlob(wide, narrow);
                               });
                             }) &&
         std::ranges::all_of(other.patterns_,
                             [&](const PathPattern& narrow) {
                               return std::ranges::any_of(patterns_, [&](const PathPattern& wide) {
                                 return wide.Covers(narrow);
                               });
                             }) &&
         std::ranges::all_of(other.ranges_, [&](const IpRange& narrow) {
           return std::ranges::any_of(ranges_,
                                      [&](const IpRange& wide) { return Contains(wide, narrow); });
         });
}

bool Condition::ListsNoneOf(const Condition& other) const {
  const auto of_both = [](const auto& mine, const auto& others, const auto& meet) {
    return std::ranges::any_of(mine, [&](const auto& a) {
      return std::ranges::any_of(others, [&](const auto& b) { return meet(a, b); });
    });
  };
  return std::ranges::none_of(other.literals_, [&](const auto& text) { return Lists(text); }) &&
         std::ranges::none_of(literals_, [&](const auto& text) { return other.Lists(text); }) &&
         (globs_.empty() || other.globs_.empty()) &&
         !of_both(patterns_, other.patterns_, MayMeet) && !of_both(ranges_, other.ranges_, Overlap);
}

bool Condition::Covers(const Condition& other) const {
  if (attribute_ != other.attribute_) return false;
  switch (asks_) {
    case Asks::kPresent:
      return other.NeedsAttribute();
    case Asks::kAbsent:
      return other.asks_ == Asks::kAbsent;
    case Asks::kOneOf:
      return other.asks_ == Asks::kOneOf && ListsAllOf(other);
    case Asks::kNoneOf:
      break;
  }
  switch (other.asks_) {
    case Asks::kAbsent:
      return true;
    case Asks::kOneOf:
      return ListsNoneOf(other);
    case Asks::kNoneOf:
      return other.ListsAllOf(*this);
    case Asks::kPresent:
      break;
  }
  return false;
}

std::string Condition::WhyNeverWith(const Condition& other) const {
  if (attribute_ != other.attribute_) return {};
  const std::string is = weir::ToString(attribute_) + " is ";
  if ((NeedsAttribute() && other.asks_ == Asks::kAbsent) ||
      (asks_ == Asks::kAbsent && other.NeedsAttribute())) {
    return is + "present and absent at once";
  }
  if (asks_ == Asks::kOneOf && other.asks_ == Asks::kOneOf && ListsNoneOf(other)) {
    return is + ValueText() + " and " + other.ValueText() + " at once";
  }
  if (asks_ == Asks::kOneOf && other.asks_ == Asks::kNoneOf && other.ListsAllOf(*this)) {
    return is + ValueText() + " and not " + other.ValueText() + " at once";
  }
  if (asks_ == Asks::kNoneOf && other.asks_ == Asks::kOneOf) return other.WhyNeverWith(*this);
  return {};
}

bool CompiledMatch::Guarantees(const Attribute& attribute) const {
  return Ensures(*this, [&](const Condition& condition) {
    if (!condition.NeedsAttribute()) return false;
    if (attribute.kind == AttributeKind::kFingerprint) {
      return condition.attribute().kind == AttributeKind::kIp;
    }
    if (attribute.kind != AttributeKind::kPathSegment) return condition.attribute() == attribute;
    return condition.attribute().kind == AttributeKind::kPath && condition.asks() == Asks::kOneOf &&
           condition.literals().empty() &&
           std::ranges::all_of(condition.patterns(),
                               [&](const auto& path) { return path.HasName(attribute.name); });
  });
}

bool CompiledMatch::Covers(const CompiledMatch& other) const {
  const auto covers_other = [&](const CompiledMatch& part) { return part.Covers(other); };
  for (const Condition& condition : conditions_) {
    if (!Ensures(other, [&](const Condition& known) { return condition.Covers(known); })) {
      return false;
    }
  }
  if (!std::ranges::all_of(all_, covers_other)) return false;
  if (!any_.empty() && !std::ranges::any_of(any_, covers_other) &&
      !AnyPart(other, [&](const CompiledMatch& part) { return part.any_ == any_; })) {
    return false;
  }
  return std::ranges::all_of(none_, [&](const CompiledMatch& excluded) {
    return AnyPart(other, [&](const CompiledMatch& part) {
      return std::ranges::any_of(
          part.none_, [&](const CompiledMatch& wider) { return wider.Covers(excluded); });
    });
  });
}

std::string CompiledMatch::WhyNever() const { return ContradictionFinder().Find(*this); }

}  // namespace weir
