// Writes YAML that the reader of policies reads back as it was meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir {

// A single value: plain where it cannot be taken for anything else, in quotes where it could.
std::string YamlScalar(std::string_view text);

// One value on one line: "a", "[a, b]", "{ a: b, c: d }".
class YamlFlow {
 public:
  static YamlFlow Scalar(std::string_view text) { return YamlFlow(YamlScalar(text)); }
  static YamlFlow Verbatim(std::string text) { return YamlFlow(std::move(text)); }
  // One is written by itself.
  static YamlFlow OneOrList(const std::vector<std::string>& texts);
  static YamlFlow List(const std::vector<YamlFlow>& items);

  const std::string& text() const { return text_; }

 private:
  explicit YamlFlow(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The entries of a map on one line.
class YamlFlowMap {
 public:
  YamlFlowMap& Add(std::string_view key, const YamlFlow& value);
  bool empty() const { return text_.empty(); }
  YamlFlow Finish() const;

 private:
  std::string text_;
};

// A document line by line.
class YamlLines {
 public:
  void Line(int level, std::string_view text);
  void Entry(int level, std::string_view key, const YamlFlow& value);
  // The lines that follow belong to `key`, one level further in.
  void Open(int level, std::string_view key);
  void Blank() { text_ += '\n'; }
  bool empty() const { return text_.empty(); }
  std::string Take() { return std::move(text_); }
  void Append(std::string_view text) { text_ += text; }

 private:
  std::string text_;
};

}  // namespace weir
