// Texts that stay for good, each kept once: what a decision says must outlive the policy it was
// made under.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace weir {

// Not thread-safe; what it returned may be read by anybody.
class TextKeeper {
 public:
  std::string_view Keep(std::string_view text) { return *texts_.emplace(text).first; }

 private:
  std::unordered_set<std::string> texts_;  // Its elements never move.
};

}  // namespace weir
