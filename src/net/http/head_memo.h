// The text of the head that was read last. A client sends the same head again and again, but for
// the length of the body; one that is the same byte for byte, but for those digits, says the same,
// and need not be parsed again.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace weir {

class HttpHeadMemo {
 public:
  // Longer heads are not kept. Most have one to three hundred bytes.
  static constexpr std::size_t kMostBytes = 1024;

  // `length` is the value of Content-Length in it: digits only; empty if there is none.
  void Keep(std::string_view head, std::string_view length) noexcept {
    size_ = head.size() <= kMostBytes ? head.size() : 0;
    std::memcpy(text_.data(), head.data(), size_);
    length_at_ = length.empty() ? size_ : static_cast<std::size_t>(length.data() - head.data());
    length_size_ = size_ == 0 ? 0 : length.size();
  }

  // Whether `bytes` begin with that head. The digits of the length may be others, but as many; they
  // are kept in the place of those before.
  bool Recall(std::string_view bytes) noexcept {
    const std::size_t behind = length_at_ + length_size_;
    if (size_ == 0 || bytes.size() < size_ ||
        std::memcmp(bytes.data(), text_.data(), length_at_) != 0 ||
        std::memcmp(bytes.data() + behind, text_.data() + behind, size_ - behind) != 0) {
      return false;
    }
    const std::string_view digits = bytes.substr(length_at_, length_size_);
    if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return false;
    std::ranges::copy(digits, text_.data() + length_at_);
    return true;
  }

  std::string_view text() const noexcept { return {text_.data(), size_}; }
  std::string_view length() const noexcept { return text().substr(length_at_, length_size_); }

 private:
  std::size_t size_ = 0;  // None is kept.
  std::size_t length_at_ = 0;
  std::size_t length_size_ = 0;
  std::array<char, kMostBytes> text_;
};

}  // namespace weir
