#include "lab/calibrate/chosen_values.h"

#include <algorithm>

#include "lab/calibrate/policy_text.h"

namespace weir::lab {

void ChosenValues::Count(const std::string& value) {
  const auto found = counts_.find(value);
  if (found != counts_.end()) {
    ++found->second;
  } else if (counts_.size() < kMostKnown && CanBeListed(value)) {
    counts_.emplace(value, 1);
  } else {
    ++others_;
  }
}

ChosenValues::Listed ChosenValues::List() const {
  std::vector<std::pair<std::uint64_t, std::string>> most;
  most.reserve(counts_.size());
  for (const auto& [value, count] : counts_) most.emplace_back(count, value);
  std::ranges::sort(most, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  Listed listed{.left_out = others_};
  for (const auto& [count, value] : most) {
    if (listed.values.size() < kMostListed) {
      listed.values.push_back(value);
      listed.requests += count;
    } else {
      listed.left_out += count;
    }
  }
  std::ranges::sort(listed.values);
  return listed;
}

}  // namespace weir::lab
