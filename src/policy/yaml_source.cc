#include "policy/yaml_source.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace weir {
namespace {

constexpr std::uint8_t ByteOf(char c) { return static_cast<std::uint8_t>(c); }
constexpr bool IsContinuation(char c) { return (ByteOf(c) & 0xC0) == 0x80; }

struct Character {
  std::uint32_t value = 0;
  std::size_t length = 0;  // 0 if the bytes are no UTF-8.
};

// The character at the start of `text`, which is not empty. Overlong forms and surrogates are none.
Character FirstOf(std::string_view text) {
  const std::uint8_t lead = ByteOf(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  std::uint32_t value = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return {};
    value = (value << 6) | (ByteOf(text[i]) & 0x3FU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, length};
}

constexpr bool IsControl(std::uint32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0);
}

std::string HexOf(std::uint32_t value) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[(value >> shift) & 0xF];
  return text;
}

}  // namespace

std::string_view WithoutByteOrderMark(std::string_view text) noexcept {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

YamlSource::YamlSource(std::string_view text) : text_(text.substr(0, kMaxYamlBytes + 1)) {
  for (std::size_t i = text_.find('\n'); i != std::string_view::npos; i = text_.find('\n', i + 1)) {
    lines_.push_back(i + 1);
  }
  has_tabs_ = text_.contains('\t');
  ascii_ = std::ranges::all_of(text_, [](char c) { return ByteOf(c) < 0x80; });
}

std::optional<YamlProblem> YamlSource::FirstProblem() {
  if (text_.size() > kMaxYamlBytes) {
    return YamlProblem{YamlProblem::Kind::kTooLarge,
                       {},
                       "the text is larger than " + std::to_string(kMaxYamlBytes >> 20) + " MiB"};
  }
  if (std::optional<YamlProblem> bad = FirstBadCharacter()) return bad;
  // The parser skips such lines in silence, also in the middle of a text.
  for (const std::size_t start : lines_) {
    if (At(start) != '%') continue;
    return YamlProblem{YamlProblem::Kind::kSyntax, PlaceOf(start),
                       "a line cannot begin with \"%\": directives are not supported; leave it "
                       "out, or put the text into quotes"};
  }
  return std::nullopt;
}

std::optional<YamlProblem> YamlSource::FirstBadCharacter() {
  using Kind = YamlProblem::Kind;
  std::size_t length = 1;
  for (std::size_t i = 0; i < text_.size(); i += length) {
    const Character character = FirstOf(text_.substr(i));
    length = character.length;
    if (length == 0) {
      return YamlProblem{Kind::kEncoding, PlaceOf(i), "this is not UTF-8; save the file as UTF-8"};
    }
    if (!IsControl(character.value)) continue;
    if (character.value != '\r') {
      return YamlProblem{Kind::kEncoding, PlaceOf(i),
                         "control character U+" + HexOf(character.value) +
                             "; remove it, or write it as an escape within double quotes"};
    }
    if (At(i + 1) == '\n' && i + 1 < text_.size()) continue;
    return YamlProblem{Kind::kEncoding, PlaceOf(i),
                       "carriage return without a line feed; end lines with LF or CR LF"};
  }
  return std::nullopt;
}

std::size_t YamlSource::LineOf(std::size_t offset) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(lines_, offset) - lines_.begin()) - 1;
}

std::size_t YamlSource::StartOfLine(std::size_t line) const {
  return lines_[std::min(line, lines_.size() - 1)];
}

std::size_t YamlSource::ColumnOf(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  return offset - lines_[LineOf(offset)];
}

YamlPlace YamlSource::PlaceOf(std::size_t offset) {
  offset = std::min(offset, text_.size());
  const std::size_t line = LineOf(offset);
  const int line_number = static_cast<int>(line) + 1;
  if (ascii_) return {line_number, static_cast<int>(offset - lines_[line]) + 1};
  if (line != cursor_line_) {
    cursor_line_ = line;
    cursor_ = lines_[line];
    cursor_column_ = 1;
  }
  for (; cursor_ < offset; ++cursor_) cursor_column_ += IsContinuation(At(cursor_)) ? 0 : 1;
  for (; cursor_ > offset; --cursor_) cursor_column_ -= IsContinuation(At(cursor_ - 1)) ? 0 : 1;
  return {line_number, cursor_column_};
}

bool YamlSource::IsIndentedByTab(std::size_t offset) const {
  if (!has_tabs_) return false;
  bool tab = false;
  for (std::size_t i = std::min(offset, text_.size()); i > 0 && text_[i - 1] != '\n'; --i) {
    if (text_[i - 1] != ' ' && text_[i - 1] != '\t') return false;
    tab = tab || text_[i - 1] == '\t';
  }
  return tab;
}

}  // namespace weir
