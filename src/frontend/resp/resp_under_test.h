// What the tests of this protocol share: commands in, replies out as text one can compare.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_under_test.h"
#include "frontend/exchange_under_test.h"
#include "frontend/resp/resp_protocol.h"
#include "net/resp/reply_reader.h"
#include "net/resp/writer.h"

namespace weir {

// A policy for tests that are not about rules.
inline constexpr std::string_view kOneRule = "rules: [{name: r, key: user, limit: 10/min}]";

inline std::string CommandOf(std::string_view words) {
  std::vector<std::string_view> split;
  while (!words.empty()) {
    const std::size_t end = words.find(' ');
    split.push_back(words.substr(0, end));
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
  ByteBuffer bytes;
  resp::WriteCommand(bytes, split);
  return std::string(bytes.view());
}

class RespUnderTest {
 public:
  explicit RespUnderTest(std::string_view policy, const ExchangeUnderTest::Options& options = {})
      : exchange(PolicyOf(policy), MakeRespProtocol, options) {}

  // One reply as one line: "[1, 16, 'text', null]".
  std::string Ask(std::string_view words) { return Show(exchange.Send(CommandOf(words))); }
  // All replies to several.
  std::vector<std::string> AskAll(const std::vector<std::string>& commands) {
    std::string bytes;
    for (const std::string& command : commands) bytes += CommandOf(command);
    return ShowAll(exchange.Send(bytes));
  }

  static std::vector<std::string> ShowAll(std::string_view bytes) {
    std::vector<std::string> shown;
    resp::ReplyReader reader;
    while (!bytes.empty()) shown.push_back(ShowOne(bytes, reader));
    return shown;
  }
  static std::string Show(std::string_view bytes) {
    const std::vector<std::string> shown = ShowAll(bytes);
    if (shown.size() == 1) return shown.front();
    return "not one reply but " + std::to_string(shown.size());
  }

  ExchangeUnderTest exchange;

 private:
  static std::string ShowOne(std::string_view& bytes, resp::ReplyReader& reader) {
    using Kind = resp::ReplyItem::Kind;
    const resp::ReplyReading reading = reader.Read(bytes);
    if (reading.kind != resp::ReplyReading::Kind::kItem) {
      bytes = {};
      return "not a reply: " + std::string(reading.error);
    }
    bytes.remove_prefix(reading.used);
    const resp::ReplyItem& item = reading.item;
    const std::string text(item.text);
    switch (item.kind) {
      case Kind::kInteger:
        return std::to_string(item.integer);
      case Kind::kNull:
        return "null";
      case Kind::kBoolean:
        return item.integer == 1 ? "true" : "false";
      case Kind::kError:
        return "-" + text;
      case Kind::kSimple:
        return "+" + text;
      case Kind::kArray:
      case Kind::kMap:
      case Kind::kSet: {
        std::string shown = item.kind == Kind::kArray ? "[" : item.kind == Kind::kMap ? "{" : "<";
        for (std::size_t i = 0; i < item.count; ++i) {
          if (i > 0) shown += item.kind == Kind::kMap && i % 2 == 1 ? ": " : ", ";
          shown += ShowOne(bytes, reader);
        }
        return shown + (item.kind == Kind::kArray ? "]" : item.kind == Kind::kMap ? "}" : ">");
      }
      default:
        return text;
    }
  }
};

}  // namespace weir
