#include "policy/request_pairs.h"

#include <algorithm>
#include <cstddef>

#include "policy/ascii.h"
#include "policy/blanks.h"

namespace weir {
namespace {

// Cuts off what stands before the separator, and the separator.
std::string_view TakeUpTo(char separator, std::string_view& left) noexcept {
  const std::size_t end = left.find(separator);
  const std::string_view piece = left.substr(0, end);
  left = end == std::string_view::npos ? std::string_view() : left.substr(end + 1);
  return piece;
}

}  // namespace

std::optional<NamedValue> CookieReader::Next() noexcept {
  while (!left_.empty()) {
    std::string_view value = WithoutBlanks(TakeUpTo(';', left_));
    if (!value.contains('=')) continue;
    const std::string_view name = WithoutBlanks(TakeUpTo('=', value));
    if (name.empty()) continue;
    value = WithoutBlanks(value);
    if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) {
      value = value.substr(1, value.size() - 2);
    }
    return NamedValue{name, value};
  }
  return std::nullopt;
}

std::string_view QueryOf(std::string_view path) noexcept {
  path = path.substr(0, path.find('#'));
  const std::size_t mark = path.find('?');
  return mark == std::string_view::npos ? std::string_view() : path.substr(mark + 1);
}

bool QueryReader::NeedsBuffer(std::string_view query) noexcept {
  return std::ranges::any_of(query, [](char c) { return c == '%' || c == '+'; });
}

std::optional<NamedValue> QueryReader::Next() noexcept {
  while (!left_.empty()) {
    std::string_view value = TakeUpTo('&', left_);
    const std::string_view name = TakeUpTo('=', value);
    if (name.empty()) continue;
    const std::string_view decoded_name = Decoded(name);
    return NamedValue{decoded_name, Decoded(value)};
  }
  return std::nullopt;
}

std::string_view QueryReader::Decoded(std::string_view text) noexcept {
  if (!NeedsBuffer(text)) return text;
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i] == '+' ? ' ' : text[i];
    if (c == '%' && text.size() - i > 2) {
      const int high = HexValue(text[i + 1]);
      const int low = HexValue(text[i + 2]);
      if (high >= 0 && low >= 0) {
        c = static_cast<char>(high << 4 | low);
        i += 2;
      }
    }
    buffer_[size++] = c;
  }
  const std::string_view decoded(buffer_.data(), size);
  buffer_ = buffer_.subspan(size);
  return decoded;
}

}  // namespace weir
