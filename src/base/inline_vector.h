// A vector with room for N in place. Unlike a std::array of N it makes nothing before it is needed:
// the arrays of a group have room for 64 and mostly hold two or three.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace weir {

template <typename T, std::size_t N>
class InlineVector {
 public:
  InlineVector() noexcept {}  // NOLINT: `= default` would be deleted, or make the items
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;
  ~InlineVector() { std::destroy_n(items_, size_); }

  // The caller sees to it that there are fewer than N.
  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    return *std::construct_at(items_ + size_++, std::forward<Arguments>(arguments)...);
  }

  // One more, with whatever lies there: for those who will write it before they read it.
  T& emplace_back_unset() noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "it would have to be made");
    return items_[size_++];
  }

  // There must be one.
  void pop_back() noexcept { std::destroy_at(items_ + --size_); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) noexcept { return items_[i]; }
  const T& operator[](std::size_t i) const noexcept { return items_[i]; }
  T& back() noexcept { return items_[size_ - 1]; }
  T* begin() noexcept { return items_; }
  T* end() noexcept { return items_ + size_; }
  const T* begin() const noexcept { return items_; }
  const T* end() const noexcept { return items_ + size_; }
  std::span<T> span() noexcept { return {items_, size_}; }

 private:
  std::size_t size_ = 0;
  union {
    T items_[N];  // NOLINT(readability-identifier-naming): as private as its union
  };
};

}  // namespace weir
