#include "net/resp/words.h"

namespace weir::resp {
namespace {

constexpr bool IsSpace(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr int HexValue(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr char Escaped(char c) noexcept {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

class WordSplitter {
 public:
  explicit WordSplitter(std::span<char> line) noexcept
      : at_(line.data()), end_(line.data() + line.size()), out_(at_) {}

  bool SkipSpaces() noexcept {
    while (at_ != end_ && IsSpace(*at_)) ++at_;
    return at_ != end_;
  }

  // False if a quote has no end, or not the end of the word behind it.
  bool ReadWord(std::string_view& word) noexcept {
    out_ = at_;
    const char* const begin = out_;
    while (at_ != end_ && !IsSpace(*at_)) {
      if (*at_ == '"' || *at_ == '\'') {
        if (!ReadQuoted(*at_++)) return false;
        if (at_ != end_ && !IsSpace(*at_)) return false;
      } else {
        *out_++ = *at_++;
      }
    }
    word = {begin, static_cast<std::size_t>(out_ - begin)};
    return true;
  }

 private:
  bool ReadQuoted(char quote) noexcept {
    while (at_ != end_) {
      const char c = *at_++;
      if (c == quote) return true;
      if (c != '\\' || at_ == end_) {
        *out_++ = c;
      } else if (quote == '"') {
        *out_++ = ReadEscape();
      } else {
        *out_++ = *at_ == '\'' ? *at_++ : c;
      }
    }
    return false;
  }

  // Behind a backslash, where there is something.
  char ReadEscape() noexcept {
    if (*at_ == 'x' && end_ - at_ >= 3 && HexValue(at_[1]) >= 0 && HexValue(at_[2]) >= 0) {
      const int value = HexValue(at_[1]) * 16 + HexValue(at_[2]);
      at_ += 3;
      return static_cast<char>(value);
    }
    return Escaped(*at_++);
  }

  char* at_;
  char* end_;
  char* out_;  // At or before `at_`.
};

}  // namespace

Words SplitWords(std::span<char> line, std::span<std::string_view> room) noexcept {
  Words words;
  WordSplitter splitter(line);
  while (splitter.SkipSpaces()) {
    if (words.count == room.size()) {
      words.outcome = Words::Outcome::kTooMany;
      return words;
    }
    if (!splitter.ReadWord(room[words.count])) {
      words.outcome = Words::Outcome::kUnbalancedQuotes;
      return words;
    }
    ++words.count;
  }
  return words;
}

}  // namespace weir::resp
