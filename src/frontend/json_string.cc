#include "frontend/json_string.h"

#include <cstdint>

namespace weir {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool IsContinuation(char c) noexcept { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// How many bytes the character takes that `text` begins with, which is beyond ASCII; 0 if it is
// none. Overlong forms, surrogates and what is above U+10FFFF are none.
std::size_t CharacterSize(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_high = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : size;
}

void PutEscape(RoomyText& out, char c) noexcept {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      return out.Put("\\\"");
    case '\\':
      return out.Put("\\\\");
    case '\n':
      return out.Put("\\n");
    case '\r':
      return out.Put("\\r");
    case '\t':
      return out.Put("\\t");
    default:
      out.Put("\\u00");
      out.Put(kHex[static_cast<unsigned char>(c) >> 4]);
      out.Put(kHex[static_cast<unsigned char>(c) & 15]);
  }
}

}  // namespace

void PutJsonString(RoomyText& out, std::string_view text) noexcept {
  out.Put('"');
  while (!text.empty()) {
    const char c = text[0];
    std::size_t size = 1;
    if (static_cast<unsigned char>(c) >= 0x80) {
      const std::size_t character = CharacterSize(text);
      if (character == 0) {
        out.Put(kReplacement);
      } else {
        out.Put(text.substr(0, character));
        size = character;
      }
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || c == '\x7f') {
      PutEscape(out, c);
    } else {
      out.Put(c);
    }
    text.remove_prefix(size);
  }
  out.Put('"');
}

void AppendJsonString(std::string& out, std::string_view text) {
  const std::size_t before = out.size();
  out.resize(before + JsonStringRoom(text.size()));
  RoomyText writer(out.data() + before);
  PutJsonString(writer, text);
  out.resize(static_cast<std::size_t>(writer.end() - out.data()));
}

}  // namespace weir
