// The words of a command that somebody typed, with the quotes that Redis knows:
//
//   SET key "a \"text\" with \x00 and \n"     escapes: \xHH \n \r \t \b \a, else the character
//   SET key 'as it stands, but for \''
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::resp {

struct Words {
  enum class Outcome : std::uint8_t { kOk, kUnbalancedQuotes, kTooMany };
  Outcome outcome = Outcome::kOk;
  std::size_t count = 0;
};

// Takes escapes out of the line where they are, which makes words shorter, never longer; the words
// point into it.
Words SplitWords(std::span<char> line, std::span<std::string_view> room) noexcept;

}  // namespace weir::resp
