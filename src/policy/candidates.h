// The numbers of matches that may hold for a request, gathered on the request path: in place as
// long as there are not very many.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weir {

class Candidates {
 public:
  Candidates() noexcept {}  // NOLINT: the array stays as it lies
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;

  void Add(std::span<const std::uint32_t> numbers) noexcept {
    if (!many_.empty() || numbers.size() > few_.size() - size_) [[unlikely]] {
      AddToMany(numbers);
      return;
    }
    for (const std::uint32_t number : numbers) {
      sorted_ = sorted_ && (size_ == 0 || few_[size_ - 1] < number);
      few_[size_++] = number;
    }
  }

  // Ascending, each once.
  std::span<const std::uint32_t> Sorted() noexcept {
    if (sorted_ && many_.empty()) return std::span(few_).first(size_);
    const std::span<std::uint32_t> all =
        many_.empty() ? std::span(few_).first(size_) : std::span(many_);
    std::ranges::sort(all);
    return all.first(all.size() - std::ranges::unique(all).size());
  }

 private:
  void AddToMany(std::span<const std::uint32_t> numbers) noexcept {
    if (many_.empty()) many_.assign(few_.begin(), few_.begin() + static_cast<long>(size_));
    many_.insert(many_.end(), numbers.begin(), numbers.end());
  }

  std::size_t size_ = 0;
  bool sorted_ = true;  // As they came, each once.
  std::array<std::uint32_t, 256> few_;
  std::vector<std::uint32_t> many_;  // All of them if not empty.
};

}  // namespace weir
