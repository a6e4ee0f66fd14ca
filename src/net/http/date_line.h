// The header that says when a response was made, as RFC 9110 5.6.7 writes times:
//
//   Date: Sun, 06 Nov 1994 08:49:37 GMT
//
// It is the same for a whole second, so it is written once in that time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace weir {

class HttpDateLine {
 public:
  static constexpr std::size_t kSize = 37;  // CR LF included.

  // The line for this time. Years that four digits cannot tell are the nearest that they can.
  void SetTo(std::chrono::sys_seconds time) noexcept {
    if (time != time_ || line_[0] == '\0') [[unlikely]]
      Write(time);
  }
  // Empty until it was set.
  std::string_view text() const noexcept {
    return {line_.data(), line_[0] == '\0' ? 0 : line_.size()};
  }

 private:
  void Write(std::chrono::sys_seconds time) noexcept;

  std::chrono::sys_seconds time_{};
  std::array<char, kSize> line_{};
};

}  // namespace weir
