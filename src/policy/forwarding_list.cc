#include "policy/forwarding_list.h"

#include <algorithm>
#include <utility>

#include "policy/attribute.h"
#include "policy/blanks.h"

namespace weir {
namespace {

// What a token is made of (RFC 9110 5.6.2).
constexpr bool IsTokenCharacter(char c) {
  if ((c >= '0' && c <= '9') || (ToLower(c) >= 'a' && ToLower(c) <= 'z')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").contains(c);
}

constexpr bool IsControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

// RFC 7239 knows these; each may stand once in an element.
constexpr std::array<std::string_view, 4> kParameters = {"for", "by", "host", "proto"};

// Reads one element of Forwarded from left to right:
//
//   [PAIR] *( ";" [PAIR] )    PAIR = token "=" ( token | quoted string )
class ElementReader {
 public:
  explicit ElementReader(std::string_view text) noexcept : text_(text) {}

  std::optional<IpAddress> Read() noexcept {
    do {
      SkipBlanks();
      if (!AtEnd() && Peek() != ';' && !ReadPair()) return std::nullopt;
      SkipBlanks();
    } while (TakeIf(';'));
    if (!AtEnd() || !seen_[0]) return std::nullopt;
    return AddressOfNode();
  }

 private:
  bool ReadPair() noexcept {
    const std::string_view name = TakeToken();
    if (name.empty() || !TakeIf('=')) return false;
    const std::optional<std::string_view> value = TakeIf('"') ? TakeQuoted() : TakeToken();
    if (!value) return false;
    for (std::size_t i = 0; i < kParameters.size(); ++i) {
      if (!EqualIgnoringCase(name, kParameters[i])) continue;
      if (std::exchange(seen_[i], true)) return false;
      if (i == 0) node_ = *value;
    }
    return true;
  }

  std::string_view TakeToken() noexcept {
    const std::size_t start = at_;
    while (!AtEnd() && IsTokenCharacter(Peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  // What stands up to the closing quote, escapes as they are.
  std::optional<std::string_view> TakeQuoted() noexcept {
    for (const std::size_t start = at_; !AtEnd(); ++at_) {
      if (IsControl(Peek())) return std::nullopt;
      if (Peek() == '"') {
        const std::string_view inner = text_.substr(start, at_ - start);
        ++at_;
        return inner;
      }
      if (Peek() == '\\' && (++at_ == text_.size() || IsControl(Peek()))) return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<IpAddress> AddressOfNode() const noexcept {
    // Longer than any address with a zone and a port.
    std::array<char, 128> buffer;
    std::size_t size = 0;
    for (std::size_t i = 0; i < node_.size(); ++i) {
      if (node_[i] == '\\') ++i;  // Never the last one.
      if (size == buffer.size()) return std::nullopt;
      buffer[size++] = node_[i];
    }
    const std::string_view node(buffer.data(), size);
    if (std::ranges::any_of(node, IsBlank)) return std::nullopt;
    // Without brackets it is IPv4, whose only colon stands before the port.
    if (!node.starts_with('[') && std::ranges::count(node, ':') > 1) return std::nullopt;
    return IpAddress::ParseForwarded(node);
  }

  bool AtEnd() const noexcept { return at_ == text_.size(); }
  char Peek() const noexcept { return text_[at_]; }

  bool TakeIf(char c) noexcept {
    if (AtEnd() || Peek() != c) return false;
    ++at_;
    return true;
  }

  void SkipBlanks() noexcept {
    while (!AtEnd() && IsBlank(Peek())) ++at_;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::string_view node_;  // The value of `for`, escapes as they are.
  std::array<bool, kParameters.size()> seen_{};
};

}  // namespace

std::string_view NameOf(ForwardingHeader header) noexcept {
  return header == ForwardingHeader::kForwarded ? "forwarded" : "x-forwarded-for";
}

std::optional<std::string_view> ForwardingList::Next() noexcept {
  if (elements_ == kMostElements) return std::nullopt;
  if (!in_line_ && !TakeLine()) return std::nullopt;
  ++elements_;
  const std::size_t comma = quoted_ ? LastComma() : line_.rfind(',');
  in_line_ = comma != std::string_view::npos;
  if (!in_line_) return line_;
  const std::string_view element = line_.substr(comma + 1);
  line_ = line_.substr(0, comma);
  return element;
}

// The last line of those that are left.
bool ForwardingList::TakeLine() noexcept {
  const std::string_view name = NameOf(header_);
  while (!headers_left_.empty()) {
    const NamedValue& header = headers_left_.back();
    headers_left_ = headers_left_.first(headers_left_.size() - 1);
    if (!EqualIgnoringCase(header.name, name)) continue;
    line_ = header.value;
    quoted_ = header_ == ForwardingHeader::kForwarded && line_.contains('"');
    if (quoted_) FindCommas();
    return true;
  }
  return false;
}

// Where a quoted string starts can be told only from the left.
void ForwardingList::FindCommas() noexcept {
  commas_found_ = 0;
  bool in_quotes = false;
  for (std::size_t at = 0; at < line_.size(); ++at) {
    const char c = line_[at];
    if (c == '"') in_quotes = !in_quotes;
    if (c == '\\' && in_quotes) ++at;
    if (c == ',' && !in_quotes) commas_[commas_found_++ % commas_.size()] = at;
  }
  commas_left_ = std::min(commas_found_, commas_.size());
}

std::size_t ForwardingList::LastComma() noexcept {
  if (commas_left_ == 0) return std::string_view::npos;
  --commas_left_;
  return commas_[--commas_found_ % commas_.size()];
}

std::optional<IpAddress> AddressIn(ForwardingHeader header, std::string_view element) noexcept {
  if (header == ForwardingHeader::kForwarded) return ElementReader(element).Read();
  return IpAddress::ParseForwarded(element);
}

}  // namespace weir
