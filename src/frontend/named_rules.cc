#include "frontend/named_rules.h"

#include <string_view>

#include "limit/limit_words.h"

namespace weir {

std::optional<Error> FindUnknownRule(const Engine& engine, const Request& request) {
  for (const std::string_view rule : request.rules) {
    if (engine.HasRule(rule)) continue;
    return Error{ErrorCode::kInvalidArgument, "rules: there is no rule " + Quoted(rule)};
  }
  return std::nullopt;
}

}  // namespace weir
