// What a match asks of one attribute, with everything worked out that can be before there is a
// request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/result.h>

#include "policy/address.h"
#include "policy/attribute.h"
#include "policy/facts.h"
#include "policy/path.h"

namespace weir {

// Immutable once made; safe to share.
class Condition {
 public:
  // What is asked: `wants` and `negated` in one.
  enum class Asks : std::uint8_t { kPresent, kAbsent, kOneOf, kNoneOf };

  // The error names the attribute and what is wrong with the test.
  static Result<Condition> Make(const AttributeTest& test);
  Condition Negated() const;

  bool Holds(const Facts& facts) const noexcept;
  // For people: what the request has instead of what is asked for. Empty if it holds.
  std::string WhyNot(const Facts& facts) const;

  const Attribute& attribute() const noexcept { return attribute_; }
  Asks asks() const noexcept { return asks_; }
  // Whether it holds only if the attribute is there.
  bool NeedsAttribute() const noexcept { return asks_ == Asks::kPresent || asks_ == Asks::kOneOf; }

  // The values of kOneOf and kNoneOf, by how they are compared.
  const std::vector<std::string>& literals() const noexcept { return literals_; }  // Sorted.
  const std::vector<std::string>& globs() const noexcept { return globs_; }
  const std::vector<PathPattern>& patterns() const noexcept { return patterns_; }  // Not literal.
  const std::vector<IpRange>& ranges() const noexcept { return ranges_; }
  // Whether one of them fits a text; not for `ip`.
  bool Lists(std::string_view value) const noexcept;
  // For people: "POST or PUT".
  std::string ValueText() const;

  // Whether it holds whenever `other` does. May say no where the answer is yes.
  bool Covers(const Condition& other) const;
  // Why it cannot hold together with `other`. Empty if it may.
  std::string WhyNeverWith(const Condition& other) const;

  friend bool operator==(const Condition& a, const Condition& b);

 private:
  bool IsListed(const Facts& facts) const noexcept;
  std::string AddValue(const std::string& text);
  std::string AddText(const std::string& text);
  bool ListsAllOf(const Condition& other) const;
  bool ListsNoneOf(const Condition& other) const;

  Attribute attribute_;
  Asks asks_ = Asks::kPresent;
  std::vector<std::string> literals_;
  std::vector<std::string> globs_;
  std::vector<PathPattern> patterns_;  // In the order of the policy.
  std::vector<IpRange> ranges_;
  IpRangeSet range_set_;
  std::vector<std::string> texts_;  // All values as people wrote them.
};

}  // namespace weir
