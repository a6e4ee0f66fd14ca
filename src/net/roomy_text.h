// Text put behind text, in room that is known to suffice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "net/decimal.h"

namespace weir {

class RoomyText {
 public:
  explicit RoomyText(char* begin) noexcept : p_(begin) {}

  void Put(std::string_view text) noexcept {
    if (text.empty()) return;
    std::memcpy(p_, text.data(), text.size());
    p_ += text.size();
  }
  // Text whose length the compiler knows: a few moves rather than a call, and most of a reply is
  // made of such.
  template <std::size_t size>
  void Put(const char (&text)[size]) noexcept {
    std::memcpy(p_, text, size - 1);
    p_ += size - 1;
  }
  // The analyzer does not know how much room the caller made.
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-security.ArrayBound)
  void Put(char c) noexcept { *p_++ = c; }
  // At most 20 bytes.
  void PutNumber(std::int64_t number) noexcept { p_ = PutDecimal(p_, number); }
  char* end() const noexcept { return p_; }

  static constexpr std::size_t kNumberRoom = kMostDecimalBytes;

 private:
  char* p_;
};

}  // namespace weir
