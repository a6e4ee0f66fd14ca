#include "policy/condition.h"

#include <algorithm>
#include <utility>

#include "limit/limit_words.h"

namespace weir {
namespace {

using Asks = Condition::Asks;
using Wants = AttributeTest::Wants;

Asks Negation(Asks asks) {
  switch (asks) {
    case Asks::kPresent:
      return Asks::kAbsent;
    case Asks::kAbsent:
      return Asks::kPresent;
    case Asks::kOneOf:
      return Asks::kNoneOf;
    case Asks::kNoneOf:
      break;
  }
  return Asks::kOneOf;
}

Asks WhatIsAsked(const AttributeTest& test) {
  Asks asks = Asks::kOneOf;
  if (test.wants == Wants::kPresent) asks = Asks::kPresent;
  if (test.wants == Wants::kAbsent) asks = Asks::kAbsent;
  return test.negated ? Negation(asks) : asks;
}

// Empty if the test makes sense as far as its shape goes.
std::string ProblemOf(const AttributeTest& test, const Attribute& attribute) {
  if (attribute.kind == AttributeKind::kFingerprint) {
    return "is a hash, which nothing can be compared with; use it in keys";
  }
  if (attribute.kind == AttributeKind::kPathSegment) {
    return "is part of the path; put what it must be into the pattern of \"path\"";
  }
  if (test.wants == Wants::kValue && test.any_of.empty()) {
    return "has no value to be compared with; write one, \"present\" or \"absent\"";
  }
  if (test.wants != Wants::kValue && !test.any_of.empty()) {
    return "cannot have values beside \"present\" or \"absent\"";
  }
  return {};
}

bool IsGlob(std::string_view text) { return text.contains('*'); }

// A text of the policy in the form that the attribute has in a request.
std::string FormOf(AttributeKind kind, const std::string& text) {
  const Request request{.method = text, .host = text};
  const Facts facts(request);
  if (kind == AttributeKind::kHost) return std::string(facts.host());
  if (kind == AttributeKind::kMethod) return std::string(facts.method());
  return text;
}

}  // namespace

Result<Condition> Condition::Make(const AttributeTest& test) {
  Result<Attribute> attribute = ParseAttribute(test.attribute);
  if (!attribute) return std::unexpected(attribute.error());
  const auto failed = [&](const std::string& problem) {
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument, weir::ToString(*attribute) + " " + problem});
  };
  if (std::string problem = ProblemOf(test, *attribute); !problem.empty()) return failed(problem);

  Condition made;
  made.attribute_ = *attribute;
  made.asks_ = WhatIsAsked(test);
  for (const std::string& text : test.any_of) {
    if (std::string problem = made.AddValue(text); !problem.empty()) return failed(problem);
  }
  std::ranges::sort(made.literals_);
  const auto repeated = std::ranges::unique(made.literals_);
  made.literals_.erase(repeated.begin(), repeated.end());
  made.range_set_ = IpRangeSet(made.ranges_);
  return made;
}

// Returns what is wrong with it.
std::string Condition::AddValue(const std::string& text) {
  if (text.empty()) return "cannot be an empty text; that counts as absent, so write \"absent\"";
  if (attribute_.kind == AttributeKind::kIp) {
    const std::optional<IpRange> range = IpRange::Parse(text);
    if (!range) return Quoted(text) + " is no address and no range such as 10.0.0.0/8";
    ranges_.push_back(*range);
    texts_.push_back(range->ToString());
    return {};
  }
  if (attribute_.kind == AttributeKind::kPath) {
    Result<PathPattern> pattern = PathPattern::Parse(text);
    if (!pattern) return "is no pattern: " + pattern.error().message;
    texts_.push_back(pattern->ToString());
    if (pattern->IsLiteral()) {
      literals_.push_back(pattern->LiteralPath());
    } else {
      patterns_.push_back(*std::move(pattern));
    }
    return {};
  }
  return AddText(text);
}

std::string Condition::AddText(const std::string& text) {
  std::string form = FormOf(attribute_.kind, text);
  if (form.size() != text.size()) {
    return Quoted(text) + " can never be a host: it is compared without port and final dot";
  }
  texts_.push_back(form);
  (IsGlob(form) ? globs_ : literals_).push_back(std::move(form));
  return {};
}

Condition Condition::Negated() const {
  Condition negated = *this;
  negated.asks_ = Negation(asks_);
  return negated;
}

bool Condition::Lists(std::string_view value) const noexcept {
  constexpr std::size_t kFew = 8;
  const bool literal = literals_.size() <= kFew
                           ? std::ranges::find(literals_, value) != literals_.end()
                           : std::ranges::binary_search(literals_, value, std::less<>());
  return literal ||
         std::ranges::any_of(globs_, [&](const auto& glob) { return FitsGlob(glob, value); }) ||
         std::ranges::any_of(patterns_, [&](const auto& pattern) { return pattern.Fits(value); });
}

// An absent attribute is not: no value is empty.
bool Condition::IsListed(const Facts& facts) const noexcept {
  if (attribute_.kind == AttributeKind::kIp) {
    return facts.ip().has_value() && range_set_.Contains(*facts.ip());
  }
  const std::string_view value = facts.Get(attribute_);
  return !value.empty() && Lists(value);
}

bool Condition::Holds(const Facts& facts) const noexcept {
  switch (asks_) {
    case Asks::kPresent:
      return facts.Has(attribute_);
    case Asks::kAbsent:
      return !facts.Has(attribute_);
    case Asks::kOneOf:
      return IsListed(facts);
    case Asks::kNoneOf:
      break;
  }
  return !IsListed(facts);
}

std::string Condition::ValueText() const {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(texts_.size(), kMost); ++i) {
    if (i > 0) text += i + 1 == texts_.size() ? " or " : ", ";
    text += texts_[i];
  }
  if (texts_.size() > kMost) text += " or " + std::to_string(texts_.size() - kMost) + " others";
  return text;
}

std::string Condition::WhyNot(const Facts& facts) const {
  if (Holds(facts)) return {};
  const bool of_ip = attribute_.kind == AttributeKind::kIp;
  std::string is = weir::ToString(attribute_) + " is ";
  if (facts.Has(attribute_)) {
    is += of_ip ? facts.ip()->ToString() : Quoted(facts.Get(attribute_));
  } else if (of_ip && !facts.request().ip.empty()) {
    return is + Quoted(facts.request().ip) + ", which is no address";
  } else {
    is += "absent";
  }
  const std::string_view in = of_ip ? "in " : "";
  switch (asks_) {
    case Asks::kPresent:
      return is;
    case Asks::kAbsent:
      return is + ", not absent";
    case Asks::kOneOf:
      return is + ", not " + std::string(in) + ValueText();
    case Asks::kNoneOf:
      break;
  }
  return is + ", but must not be " + std::string(in) + ValueText();
}

bool operator==(const Condition& a, const Condition& b) {
  return a.attribute_ == b.attribute_ && a.asks_ == b.asks_ && a.literals_ == b.literals_ &&
         a.globs_ == b.globs_ && a.patterns_ == b.patterns_ && a.ranges_ == b.ranges_;
}

}  // namespace weir
