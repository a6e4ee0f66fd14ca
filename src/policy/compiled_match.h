// When a rule applies, with everything worked out that can be before there is a request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/result.h>

#include "policy/attribute.h"
#include "policy/condition.h"
#include "policy/facts.h"

namespace weir {

// Immutable; safe to share.
class CompiledMatch {
 public:
  static constexpr int kMaxDepth = 32;  // Of matches in matches.

  // The error names the test that makes no sense.
  static Result<CompiledMatch> Make(const Match& match);

  bool Holds(const Facts& facts) const noexcept { return HoldsBeside(kNoCondition, facts); }
  // The same where one of its own conditions, by its number, is known to hold.
  static constexpr std::size_t kNoCondition = static_cast<std::size_t>(-1);
  bool HoldsBeside(std::size_t sure, const Facts& facts) const noexcept;

  // For people: the first part that does not hold, and what the request has instead. Empty if all
  // do. path is "/cart", not /search/**
  std::string WhyNot(const Facts& facts) const;

  // What stands in the path where one of the patterns has {name}: the first that fits and has such
  // a name, looking at this match's own conditions, then at those in `all`, then `any`.
  std::string_view PathSegment(const Facts& facts, std::string_view name) const noexcept;
  // Whether some pattern that PathSegment looks at has {name}.
  bool HasPathName(std::string_view name) const noexcept;
  // Whether every request that it holds for has the attribute. May say no where the answer is yes.
  bool Guarantees(const Attribute& attribute) const;
  // Whether it holds whenever `other` does. May say no where the answer is yes.
  bool Covers(const CompiledMatch& other) const;
  // Whether no request at all can fit, and why: method is GET and POST at once. Empty if some may.
  std::string WhyNever() const;

  // With those parts of `none` that are a single test, negated.
  const std::vector<Condition>& conditions() const noexcept { return conditions_; }
  const std::vector<CompiledMatch>& all() const noexcept { return all_; }
  const std::vector<CompiledMatch>& any() const noexcept { return any_; }
  const std::vector<CompiledMatch>& none() const noexcept { return none_; }
  // Whether it is nothing but these conditions.
  bool IsFlat() const noexcept { return all_.empty() && any_.empty() && none_.empty(); }

  friend bool operator==(const CompiledMatch&, const CompiledMatch&) = default;

 private:
  static Result<CompiledMatch> MakeAt(int depth, const Match& match);
  void Exclude(CompiledMatch part);

  std::vector<Condition> conditions_;
  std::vector<CompiledMatch> all_;
  std::vector<CompiledMatch> any_;
  std::vector<CompiledMatch> none_;
};

}  // namespace weir
