#include "policy/yaml_writer.h"

#include <algorithm>
#include <array>

namespace weir {
namespace {

bool IsPlainCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_./-+@").contains(c);
}

// Words that some reader of YAML takes for something other than text.
bool IsSpecialWord(std::string_view text) {
  constexpr std::array<std::string_view, 13> kWords = {"true",   "false",  "null", "yes", "no",
                                                       "on",     "off",    "y",    "n",   "present",
                                                       "absent", "global", "nan"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::ranges::find(kWords, lower) != kWords.end();
}

// Words with blanks between them, none of whose characters has a meaning in YAML.
bool IsPlain(std::string_view text) {
  if (text.empty() || IsSpecialWord(text)) return false;
  if (text.front() == '-' || text.front() == '.' || text.front() == '@') return false;
  if (text.front() == ' ' || text.back() == ' ') return false;
  return std::ranges::all_of(text, [](char c) { return c == ' ' || IsPlainCharacter(c); });
}

// Control characters as escapes: those of ASCII, and U+0080 to U+009F, which are two bytes. The
// reader takes neither as they are. U+2028 and the like are text to it.
std::string InQuotes(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  const auto escape = [&](unsigned char byte) {
    quoted += "\\x";
    quoted += kHex[byte >> 4];
    quoted += kHex[byte & 15];
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == '"' || byte == '\\') {
      quoted += '\\';
      quoted += text[i];
    } else if (byte < ' ' || byte == 0x7f) {
      escape(byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      escape(next);
      ++i;
    } else {
      quoted += text[i];
    }
  }
  return quoted + "\"";
}

}  // namespace

std::string YamlScalar(std::string_view text) {
  return IsPlain(text) ? std::string(text) : InQuotes(text);
}

YamlFlow YamlFlow::OneOrList(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return Scalar(texts.front());
  std::vector<YamlFlow> items;
  items.reserve(texts.size());
  for (const std::string& text : texts) items.push_back(Scalar(text));
  return List(items);
}

YamlFlow YamlFlow::List(const std::vector<YamlFlow>& items) {
  std::string text = "[";
  for (const YamlFlow& item : items) text += (text.size() > 1 ? ", " : "") + item.text();
  return YamlFlow(text + "]");
}

YamlFlowMap& YamlFlowMap::Add(std::string_view key, const YamlFlow& value) {
  text_ += (text_.empty() ? "" : ", ") + YamlScalar(key) + ": " + value.text();
  return *this;
}

YamlFlow YamlFlowMap::Finish() const {
  return YamlFlow::Verbatim(text_.empty() ? "{}" : "{ " + text_ + " }");
}

void YamlLines::Line(int level, std::string_view text) {
  text_.append(static_cast<std::size_t>(level) * 2, ' ');
  text_ += text;
  text_ += '\n';
}

void YamlLines::Entry(int level, std::string_view key, const YamlFlow& value) {
  Line(level, YamlScalar(key) + ": " + value.text());
}

void YamlLines::Open(int level, std::string_view key) { Line(level, YamlScalar(key) + ":"); }

}  // namespace weir
