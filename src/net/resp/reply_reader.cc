#include "net/resp/reply_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace weir::resp {
namespace {

using ItemKind = ReplyItem::Kind;

constexpr bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

ReplyReading Malformed(std::string_view error) noexcept {
  return {.kind = ReplyReading::Kind::kMalformed, .error = error};
}

ReplyReading Item(const ReplyItem& item) noexcept {
  return {.kind = ReplyReading::Kind::kItem, .item = item};
}

// A sign is allowed in front, a plus too.
std::optional<std::int64_t> Integer(std::string_view text) noexcept {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<double> Double(std::string_view text) noexcept {
  std::string_view bare = text;
  if (bare.starts_with('+') || bare.starts_with('-')) bare.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (bare == "inf") {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return negative ? -kInfinity : kInfinity;
  }
  if (bare == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (bare.empty() || !IsDigit(bare.front())) return std::nullopt;
  double value = 0;
  const char* const end = bare.data() + bare.size();
  const auto [stop, error] = std::from_chars(bare.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return negative ? -value : value;
}

bool IsBigNumber(std::string_view text) noexcept {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

// What a line with a length in it may begin with.
constexpr bool IsLengthType(char type) noexcept {
  return std::string_view("$!=*%~>|").contains(type);
}

// The longest line of a type but for simple texts, which may have as many bytes as any item.
constexpr std::size_t MostLineBytes(char type, std::size_t most_bytes) noexcept {
  constexpr std::size_t kNumberBytes = 64;
  if (type == '+' || type == '-' || type == '(') return most_bytes;
  return kNumberBytes;
}

}  // namespace

ReplyReading ReplyReader::Read(std::string_view input) noexcept {
  if (input.empty()) return {.wants = 1};
  const char type = input.front();
  if (!std::string_view("+-:$*_,#(!=%~>|").contains(type)) {
    return Malformed(type == ';' || type == '.' ? "streamed types are not supported"
                                                : "not a type of reply");
  }
  const std::size_t most = MostLineBytes(type, bounds_.bytes);
  // Behind the type, with the line end.
  const std::string_view seen = input.substr(1, most + 2);
  const std::size_t line_end = seen.find('\n', scanned_);
  if (line_end == std::string_view::npos) {
    if (seen.size() == most + 2) return Malformed("a line is too long");
    scanned_ = seen.size();
    return {.wants = input.size() + 1};
  }
  scanned_ = 0;
  if (line_end == 0 || seen[line_end - 1] != '\r') return Malformed("a line end is not \\r\\n");
  const std::string_view line = seen.substr(0, line_end - 1);
  if (line.contains('\r')) return Malformed("a line end is not \\r\\n");
  const std::size_t used = line_end + 2;
  if (!IsLengthType(type)) return Ended(ReadLineItem(type, line), used);
  if (line == "?") return Malformed("streamed types are not supported");
  if (type == '$' || type == '!' || type == '=') {
    return ReadText(type, line, input.substr(used));
  }
  return BeginGroup(type, line);
}

ReplyReading ReplyReader::ReadLineItem(char type, std::string_view line) noexcept {
  switch (type) {
    case '+':
      return Item({.kind = ItemKind::kSimple, .text = line});
    case '-':
      return Item({.kind = ItemKind::kError, .text = line});
    case '(':
      if (!IsBigNumber(line)) return Malformed("not a big number");
      return Item({.kind = ItemKind::kBigNumber, .text = line});
    case '_':
      if (!line.empty()) return Malformed("a null has nothing in it");
      return Item({.kind = ItemKind::kNull});
    case '#':
      if (line != "t" && line != "f") return Malformed("not a boolean");
      return Item({.kind = ItemKind::kBoolean, .integer = line == "t" ? 1 : 0});
    case ',': {
      const std::optional<double> number = Double(line);
      if (!number) return Malformed("not a double");
      return Item({.kind = ItemKind::kDouble, .number = *number});
    }
    default: {
      const std::optional<std::int64_t> integer = Integer(line);
      if (!integer) return Malformed("not an integer");
      return Item({.kind = ItemKind::kInteger, .integer = *integer});
    }
  }
}

ReplyReading ReplyReader::ReadText(char type, std::string_view line,
                                   std::string_view input) noexcept {
  const std::size_t header = line.size() + 3;
  const std::optional<std::int64_t> length = Integer(line);
  if (length && *length == -1 && type == '$') return Ended(Item({.kind = ItemKind::kNull}), header);
  if (!length || *length < 0) return Malformed("invalid bulk length");
  const auto size = static_cast<std::size_t>(*length);
  if (size > bounds_.bytes) return Malformed("a text is too long");
  if (input.size() < size + 2) return {.wants = header + size + 2};
  if (input[size] != '\r' || input[size + 1] != '\n') {
    return Malformed("a text is longer than it says");
  }
  const std::string_view text = input.substr(0, size);
  if (type == '=' && (size < 4 || text[3] != ':')) return Malformed("a text without its format");
  const ItemKind kind = type == '$'   ? ItemKind::kBulk
                        : type == '!' ? ItemKind::kError
                                      : ItemKind::kVerbatim;
  return Ended(Item({.kind = kind, .text = text}), header + size + 2);
}

ReplyReading ReplyReader::BeginGroup(char type, std::string_view line) noexcept {
  const std::size_t header = line.size() + 3;
  const std::optional<std::int64_t> count = Integer(line);
  if (count && *count == -1 && type == '*') return Ended(Item({.kind = ItemKind::kNull}), header);
  if (!count || *count < 0) return Malformed("invalid multibulk length");
  const bool pairs = type == '%' || type == '|';
  const auto declared = static_cast<std::size_t>(*count);
  if (declared > bounds_.items) return Malformed("a reply has too many items");
  const std::size_t inside = pairs ? declared * 2 : declared;
  if (inside > bounds_.items - items_) return Malformed("a reply has too many items");
  if (type == '>' && depth_ > 0) return Malformed("a push within a reply");
  if (depth_ >= std::min(bounds_.depth, ReplyBounds::kMostDepth)) {
    return Malformed("a reply is too deep");
  }
  const ItemKind kind = type == '*'   ? ItemKind::kArray
                        : type == '%' ? ItemKind::kMap
                        : type == '~' ? ItemKind::kSet
                        : type == '>' ? ItemKind::kPush
                                      : ItemKind::kAttribute;
  ReplyReading reading = Item({.kind = kind, .depth = depth_, .count = inside});
  reading.used = header;
  items_ += inside;
  if (inside > 0) {
    open_[depth_++] = {.left = inside, .is_attribute = type == '|'};
  } else if (type != '|') {
    reading.item.ends_reply = EndItem();
  } else if (++items_ > bounds_.items) {
    return Malformed("a reply has too many items");  // Else empty ones could follow without end.
  }
  return reading;
}

ReplyReading ReplyReader::Ended(ReplyReading reading, std::size_t used) noexcept {
  if (reading.kind != ReplyReading::Kind::kItem) return reading;
  reading.used = used;
  reading.item.depth = depth_;
  reading.item.ends_reply = EndItem();
  return reading;
}

bool ReplyReader::EndItem() noexcept {
  while (depth_ > 0) {
    Open& innermost = open_[depth_ - 1];
    if (--innermost.left > 0) return false;
    --depth_;
    if (innermost.is_attribute) return false;
  }
  items_ = 0;
  return true;
}

}  // namespace weir::resp
