#include "engine/rule_counters.h"

#include <array>

#include <weir/engine.h>

namespace weir {
namespace {

constexpr std::array<std::string_view, 3> kOutcomes = {"allowed", "denied", "shadow_denied"};
constexpr std::array<std::string_view, 3> kUnruled = {"allow_list", "deny_list", "no_rule"};

}  // namespace

RuleCounters::RuleCounters()
    : counts_(static_cast<std::uint64_t*>(std::calloc(kCells * kCellSize, sizeof(std::uint64_t)))) {
  if (counts_ == nullptr) std::abort();
}

std::uint32_t RuleCounters::RowOf(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = rows_.find(name); found != rows_.end()) return found->second;
  if (names_.size() == kMostNames) return kOtherRow;
  names_.push_back(name);
  const auto row = static_cast<std::uint32_t>(names_.size());
  rows_.emplace(name, row);
  return row;
}

std::uint64_t RuleCounters::Sum(std::size_t row, std::size_t column) const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t cell = 0; cell < kCells; ++cell) {
    std::uint64_t& count = counts_[cell * kCellSize + row * kColumns + column];
    sum += std::atomic_ref(count).load(std::memory_order_relaxed);
  }
  return sum;
}

std::vector<RuleCount> RuleCounters::Read() const {
  std::vector<RuleCount> counts;
  const auto add = [&](std::string_view rule, std::size_t row, const auto& outcomes) {
    for (std::size_t column = 0; column < outcomes.size(); ++column) {
      const std::uint64_t count = Sum(row, column);
      if (count > 0) counts.push_back({.rule = rule, .outcome = outcomes[column], .count = count});
    }
  };
  const std::scoped_lock lock(mutex_);
  add("", 0, kUnruled);
  for (std::size_t i = 0; i < names_.size(); ++i) add(names_[i], i + 1, kOutcomes);
  add("other", kOtherRow, kOutcomes);
  return counts;
}

}  // namespace weir
