#include "lab/shown_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::lab {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "…";

struct Character {
  char32_t code = 0;
  std::size_t size = 0;  // 0: the text begins with none.
};

// Overlong forms, surrogates and what is above U+10FFFF are no characters.
Character FirstCharacter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {.code = first, .size = 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return {};
  char32_t code = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = (code << 6) | (next & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[size] || surrogate || code > 0x10ffff) return {};
  return {.code = code, .size = size};
}

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t kSize>
bool IsIn(const std::array<Range, kSize>& ranges, char32_t code) {
  const auto after =
      std::ranges::upper_bound(ranges, code, {}, [](const Range& range) { return range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

// Controls, marks that turn the direction of what follows, ends of lines by other names, what is
// not to be interchanged, and characters that exist only to tag others.
constexpr std::array<Range, 11> kUnseen = {{{0x00, 0x1f},
                                            {0x7f, 0x9f},
                                            {0x61c, 0x61c},
                                            {0x200e, 0x200f},
                                            {0x2028, 0x202e},
                                            {0x2060, 0x206f},
                                            {0xfdd0, 0xfdef},
                                            {0xfeff, 0xfeff},
                                            {0xfff9, 0xfffb},
                                            {0xfffe, 0xffff},
                                            {0xe0000, 0xe007f}}};
constexpr std::array<Range, 22> kNoColumn = {
    {{0x300, 0x36f},   {0x483, 0x489},    {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
     {0x6d6, 0x6dc},   {0x6df, 0x6e4},    {0x900, 0x902},   {0x93a, 0x93a},   {0x941, 0x948},
     {0xe31, 0xe31},   {0xe34, 0xe3a},    {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
     {0x200b, 0x200d}, {0x20d0, 0x20ff},  {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f},
     {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}}};
constexpr std::array<Range, 13> kTwoColumns = {{{0x1100, 0x115f},
                                                {0x231a, 0x231b},
                                                {0x2e80, 0x3029},
                                                {0x302e, 0x303e},
                                                {0x3041, 0x3098},
                                                {0x309b, 0xa4cf},
                                                {0xa960, 0xa97f},
                                                {0xac00, 0xd7a3},
                                                {0xf900, 0xfaff},
                                                {0xfe30, 0xfe6f},
                                                {0xff01, 0xff60},
                                                {0xffe0, 0xffe6},
                                                {0x1f300, 0x3fffd}}};

void AppendHex(std::string& out, char32_t code) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const int digits = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
  out += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[(code >> shift) & 15];
}

std::size_t ColumnsOf(char32_t code) {
  if (IsIn(kNoColumn, code)) return 0;
  return IsIn(kTwoColumns, code) ? 2 : 1;
}

}  // namespace

std::string ShownText(std::string_view text, Lines lines) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (character.size == 0) {
      shown += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    const bool stays =
        lines == Lines::kMany && (character.code == U'\n' || character.code == U'\t');
    if (!stays && IsIn(kUnseen, character.code)) {
      AppendHex(shown, character.code);
    } else {
      shown += text.substr(0, character.size);
    }
    text.remove_prefix(character.size);
  }
  return shown;
}

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    width += character.size == 0 ? 1 : ColumnsOf(character.code);
    text.remove_prefix(std::max<std::size_t>(1, character.size));
  }
  return width;
}

std::string CutTo(std::string_view text, std::size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::size_t bytes = 0;
  std::size_t columns = 0;
  while (bytes < text.size()) {
    const Character character = FirstCharacter(text.substr(bytes));
    const std::size_t more = character.size == 0 ? 1 : ColumnsOf(character.code);
    if (columns + more > width - 1) break;
    columns += more;
    bytes += std::max<std::size_t>(1, character.size);
  }
  return std::string(text.substr(0, bytes)) + std::string(kEllipsis);
}

std::string Wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out;
  const std::size_t room = std::max<std::size_t>(20, width) - indent.size();
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::size_t column = 0;
    std::string wrapped;
    while (!line.empty()) {
      const std::size_t space = std::min(line.find(' ', 1), line.size());
      const std::string_view word = line.substr(0, space);
      line.remove_prefix(space);
      const std::size_t columns = DisplayWidth(word);
      if (column > 0 && column + columns > room) {
        wrapped += "\n" + std::string(indent) + std::string(word.substr(word[0] == ' ' ? 1 : 0));
        column = columns - (word[0] == ' ' ? 1 : 0);
      } else {
        wrapped += word;
        column += columns;
      }
    }
    if (!wrapped.empty()) out += std::string(indent) + wrapped;
    out += "\n";
  }
  return out;
}

}  // namespace weir::lab
