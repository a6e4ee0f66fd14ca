#include "policy/compiled_match.h"

#include <algorithm>
#include <utility>

namespace weir {

Result<CompiledMatch> CompiledMatch::Make(const Match& match) { return MakeAt(1, match); }

Result<CompiledMatch> CompiledMatch::MakeAt(int depth, const Match& match) {
  if (depth > kMaxDepth) {
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument,
              "matches may be nested " + std::to_string(kMaxDepth) + " deep, not deeper"});
  }
  CompiledMatch made;
  for (const AttributeTest& test : match.attributes) {
    Result<Condition> condition = Condition::Make(test);
    if (!condition) return std::unexpected(condition.error());
    made.conditions_.push_back(*std::move(condition));
  }
  std::vector<CompiledMatch> none;
  for (const auto& [parts, to] :
       {std::pair(&match.all, &made.all_), {&match.any, &made.any_}, {&match.none, &none}}) {
    for (const Match& part : *parts) {
      Result<CompiledMatch> compiled = MakeAt(depth + 1, part);
      if (!compiled) return compiled;
      to->push_back(*std::move(compiled));
    }
  }
  for (CompiledMatch& part : none) made.Exclude(std::move(part));
  return made;
}

void CompiledMatch::Exclude(CompiledMatch part) {
  if (part.IsFlat() && part.conditions_.size() == 1) {
    conditions_.push_back(part.conditions_.front().Negated());
  } else {
    none_.push_back(std::move(part));
  }
}

bool CompiledMatch::HoldsBeside(std::size_t sure, const Facts& facts) const noexcept {
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    if (i != sure && !conditions_[i].Holds(facts)) return false;
  }
  if (IsFlat()) return true;
  const auto holds = [&](const CompiledMatch& part) { return part.Holds(facts); };
  return std::ranges::all_of(all_, holds) && (any_.empty() || std::ranges::any_of(any_, holds)) &&
         std::ranges::none_of(none_, holds);
}

std::string CompiledMatch::WhyNot(const Facts& facts) const {
  for (const Condition& condition : conditions_) {
    if (std::string why = condition.WhyNot(facts); !why.empty()) return why;
  }
  for (const CompiledMatch& part : all_) {
    if (std::string why = part.WhyNot(facts); !why.empty()) return why;
  }
  const auto holds = [&](const CompiledMatch& part) { return part.Holds(facts); };
  if (any_.size() == 1) {
    if (std::string why = any_.front().WhyNot(facts); !why.empty()) return why;
  } else if (!any_.empty() && std::ranges::none_of(any_, holds)) {
    return "none of the alternatives in \"any\" holds";
  }
  if (std::ranges::any_of(none_, holds)) return "what is excluded by \"not\" holds";
  return {};
}

bool CompiledMatch::HasPathName(std::string_view name) const noexcept {
  const auto part_has = [&](const CompiledMatch& part) { return part.HasPathName(name); };
  const auto has = [&](const Condition& condition) {
    return condition.asks() == Condition::Asks::kOneOf &&
           std::ranges::any_of(condition.patterns(),
                               [&](const PathPattern& pattern) { return pattern.HasName(name); });
  };
  return std::ranges::any_of(conditions_, has) || std::ranges::any_of(all_, part_has) ||
         std::ranges::any_of(any_, part_has);
}

std::string_view CompiledMatch::PathSegment(const Facts& facts,
                                            std::string_view name) const noexcept {
  for (const Condition& condition : conditions_) {
    if (condition.asks() != Condition::Asks::kOneOf) continue;
    for (const PathPattern& pattern : condition.patterns()) {
      const std::string_view found = pattern.Segment(facts.path(), name);
      if (!found.empty()) return found;
    }
  }
  for (const std::vector<CompiledMatch>* parts : {&all_, &any_}) {
    for (const CompiledMatch& part : *parts) {
      const std::string_view found = part.PathSegment(facts, name);
      if (!found.empty()) return found;
    }
  }
  return {};
}

}  // namespace weir
