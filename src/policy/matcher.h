// Which of many matches hold for a request.
//
// Every match is filed under one of its tests: the one that the fewest others are filed under.
// A request looks up only what it has, so its cost depends on the matches that come close, not on
// how many there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/result.h>

#include "base/inline_vector.h"
#include "policy/address.h"
#include "policy/attribute.h"
#include "policy/facts.h"
#include "policy/path.h"

namespace weir {

// A Match with everything that can be worked out before the request. Immutable; safe to share.
class CompiledMatch {
 public:
  // The error names the test that makes no sense.
  static Result<CompiledMatch> Make(const Match& match);

  bool Holds(const Facts& facts) const noexcept;

  // For people: the first part that does not hold, and what the request has instead. Empty if all
  // do. "path is /cart, not /search/**"
  std::string WhyNot(const Facts& facts) const;

  // What stands in the path where one of the patterns has {name}: those that fit, in their order.
  std::string_view PathSegment(const Facts& facts, std::string_view name) const noexcept;
  // Whether every request that it holds for has the attribute.
  bool Guarantees(const Attribute& attribute) const;
  // Whether it holds whenever `other` does. May say no where the answer is yes.
  bool Covers(const CompiledMatch& other) const;
  // Whether no request at all can fit, and why: method is GET and POST at once. Empty if some may.
  std::string WhyNever() const;
};

// Immutable once made; safe to share.
class Matcher {
 public:
  explicit Matcher(std::vector<CompiledMatch> matches);

  // The numbers of those that hold, ascending, each once. At most `most` of them.
  template <typename Sink>  // void(std::uint32_t)
  void ForEach(const Facts& facts, Sink&& sink) const;

  const CompiledMatch& operator[](std::size_t i) const noexcept;
};

}  // namespace weir
