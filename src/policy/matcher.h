// Which of many matches hold for a request.
//
// Every match is filed under one of its tests: the one that the fewest others are filed under.
// A request looks up only what it has, so its cost depends on the matches that come close, not on
// how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "policy/candidates.h"
#include "policy/compiled_match.h"
#include "policy/facts.h"
#include "policy/match_index.h"

namespace weir {

// Immutable once made; safe to share.
class Matcher {
 public:
  explicit Matcher(std::vector<CompiledMatch> matches)
      : matches_(std::move(matches)), index_(matches_), checks_(matches_.size()) {
    for (std::uint32_t number = 0; number < matches_.size(); ++number) {
      const std::uint32_t sure = index_.SureOf(number);
      const std::size_t conditions = matches_[number].conditions().size();
      checks_[number] = {
          .none = matches_[number].IsFlat() && conditions == (sure == MatchIndex::kNone ? 0U : 1U),
          .sure = sure};
    }
  }

  // The numbers of those that hold, ascending, each once. Allocates only if more than 256 come
  // close.
  template <typename Sink>  // void(std::uint32_t)
  void ForEach(const Facts& facts, Sink&& sink) const {
    Candidates found;
    index_.Find(facts, found);
    for (const std::uint32_t number : found.Sorted()) {
      const Checks& checks = checks_[number];
      if (checks.none || matches_[number].HoldsBeside(checks.sure, facts)) sink(number);
    }
  }

  std::size_t size() const noexcept { return matches_.size(); }
  const CompiledMatch& operator[](std::size_t i) const noexcept { return matches_[i]; }

 private:
  // What is left to be asked of a match that was found.
  struct Checks {
    bool none = false;
    std::uint32_t sure = MatchIndex::kNone;  // The condition that need not be.
  };

  std::vector<CompiledMatch> matches_;
  MatchIndex index_;
  std::vector<Checks> checks_;
};

}  // namespace weir
