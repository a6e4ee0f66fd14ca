// Logs whose lines are JSON objects: Envoy's, Caddy's, and whatever has names for its columns. What
// is nested has a name with dots in it: request.headers.User-Agent.0.
#include <simdjson.h>

#include <algorithm>
#include <map>

#include "lab/log/line_parser.h"

namespace weir::lab {
namespace {

namespace ondemand = simdjson::ondemand;
using Kind = LineResult::Kind;

// Deeper than this nothing has a name.
constexpr int kDeepest = 8;

// What a name is good for, and those of what is nested in it.
struct Node {
  std::optional<ColumnUse> use{};
  std::map<std::string, Node, std::less<>> inner{};
};

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), LowerCase);
  return lower;
}

struct JsonPlan {
  std::string name;
  ColumnNames names{};
  // By names in lower case, as they may have any; whether one is meant as it is written is told by
  // asking for its use.
  Node root{};
  std::size_t wanted = 0;

  void Add(std::string_view column) {
    Node* node = &root;
    const std::string lower = InLowerCase(column);
    for (std::size_t from = 0; from <= lower.size();) {
      const std::size_t dot = std::min(lower.find('.', from), lower.size());
      node = &node->inner[lower.substr(from, dot - from)];
      from = dot + 1;
    }
    node->use.emplace();
    // A name with dots may also be just that.
    if (lower.contains('.')) root.inner[lower].use.emplace();
  }
};

class JsonParser final : public LineParser {
 public:
  explicit JsonParser(const JsonPlan& plan)
      : plan_(plan), usual_(UsualNamesOf(plan.name)), is_caddy_(plan.name == "caddy") {}

  LineResult Parse(std::string_view line, LogRecord& record, Texts& texts) override {
    if (SaysNothing(line) || (is_caddy_ && IsOfAnotherLogger(line))) return {.kind = Kind::kBlank};
    if (line[line.find_first_not_of(" \t")] != '{')
      return {.kind = Kind::kUnparsed, .why = "not an object of JSON"};
    builder_.Begin(record, plan_.wanted, texts);
    texts_ = &texts;
    ondemand::document document;
    ondemand::object object;
    const simdjson::padded_string_view padded(line.data(), line.size(),
                                              line.size() + simdjson::SIMDJSON_PADDING);
    const bool read = parser_.iterate(padded).get(document) == simdjson::SUCCESS &&
                      document.get_object().get(object) == simdjson::SUCCESS;
    name_.clear();
    if (!read || !TakeObject(object, plan_.root, 0) || !IsAtEnd(document)) {
      return {.kind = Kind::kUnparsed, .why = "not JSON"};
    }
    const LineResult result = builder_.Finish();
    // Servers write of themselves, too: that one was started is no request.
    const bool is_nobodys = record.ip.empty() && record.method.empty() && record.path.empty() &&
                            record.status == 0 && plan_.name != "jsonl";
    if (result.kind == Kind::kRequest && is_nobodys) {
      return {.kind = Kind::kUnparsed, .why = "it is not about a request"};
    }
    return result;
  }

 private:
  // Caddy tells of a request that failed a second time, as http.log.error. Within a text the quotes
  // would have backslashes.
  static bool IsOfAnotherLogger(std::string_view line) {
    constexpr std::string_view kLogger = "\"logger\":\"";
    const std::size_t at = line.find(kLogger);
    return at != std::string_view::npos &&
           !line.substr(at + kLogger.size()).starts_with("http.log.access");
  }

  static bool IsAtEnd(ondemand::document& document) {
    const char* where = nullptr;
    return document.current_location().get(where) == simdjson::OUT_OF_BOUNDS;
  }

  // False if it is not JSON.
  bool TakeObject(ondemand::object& object, const Node& node, int depth) {
    for (auto field_or_error : object) {
      ondemand::field field;
      std::string_view key;
      if (std::move(field_or_error).get(field) != simdjson::SUCCESS) return false;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS) return false;
      if (!TakeNamed(key, field.value(), node, depth)) return false;
    }
    return true;
  }

  bool TakeNamed(std::string_view key, ondemand::value& value, const Node& node, int depth) {
    lower_.assign(key);
    std::ranges::transform(lower_, lower_.begin(), LowerCase);
    const auto found = node.inner.find(lower_);
    // What nobody asks for must still be JSON.
    if (found == node.inner.end() || depth >= kDeepest) return Skip(value);
    const std::size_t before = name_.size();
    if (before > 0) name_ += '.';
    name_ += key;
    const bool right = TakeValue(value, found->second, depth);
    name_.resize(before);
    return right;
  }

  // What begins as null does may be something else, which is an error and no answer.
  static bool IsNull(ondemand::value& value) {
    bool is = false;
    return value.is_null().get(is) == simdjson::SUCCESS && is;
  }

  static bool Skip(ondemand::value& value) {
    ondemand::json_type type;
    if (value.type().get(type) != simdjson::SUCCESS) return false;
    std::string_view ignored;
    switch (type) {
      case ondemand::json_type::object:
      case ondemand::json_type::array:
        return !value.raw_json_token().empty();
      case ondemand::json_type::string:
        return value.get_string().get(ignored) == simdjson::SUCCESS;
      case ondemand::json_type::number: {
        double number = 0;
        return value.get_double().get(number) == simdjson::SUCCESS;
      }
      case ondemand::json_type::boolean: {
        bool is = false;
        return value.get_bool().get(is) == simdjson::SUCCESS;
      }
      case ondemand::json_type::null:
        return IsNull(value);
    }
    return false;
  }

  bool TakeValue(ondemand::value& value, const Node& node, int depth) {
    ondemand::json_type type;
    if (value.type().get(type) != simdjson::SUCCESS) return false;
    if (type == ondemand::json_type::object) {
      ondemand::object object;
      return value.get_object().get(object) == simdjson::SUCCESS &&
             TakeObject(object, node, depth + 1);
    }
    if (type == ondemand::json_type::array) return TakeArray(value, node, depth);
    if (!node.use) return Skip(value);
    const ColumnUse& use = UseOfName();
    if (type == ondemand::json_type::string) {
      std::string_view raw = value.raw_json_token();
      std::string_view text;
      const bool escaped = raw.contains('\\');
      if (value.get_string().get(text) != simdjson::SUCCESS) return false;
      // Without escapes it stands in the line as it is; else it is the parser's until the next
      // line.
      builder_.Take(use, escaped ? texts_->Keep(text) : raw.substr(1, text.size()));
      return true;
    }
    if (type == ondemand::json_type::null) return IsNull(value);
    std::string_view raw = value.raw_json_token();
    while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\t')) raw.remove_suffix(1);
    if (!Skip(value)) return false;
    builder_.Take(use, raw);
    return true;
  }

  // Its elements are called 0, 1 and so on.
  bool TakeArray(ondemand::value& value, const Node& node, int depth) {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return false;
    int number = 0;
    for (auto element_or_error : array) {
      ondemand::value element;
      if (std::move(element_or_error).get(element) != simdjson::SUCCESS) return false;
      const std::string key = number < 10 ? std::string(1, static_cast<char>('0' + number)) : "";
      if (!TakeNamed(key, element, node, depth + 1)) return false;
      ++number;
    }
    return true;
  }

  // Asked once for every name as it is written.
  const ColumnUse& UseOfName() {
    const auto known = uses_.find(name_);
    if (known != uses_.end()) return known->second;
    // Names in all their spellings are few, unless somebody makes them up.
    if (uses_.size() > 1024) uses_.clear();
    return uses_.emplace(name_, UseOf(name_, usual_, plan_.names)).first->second;
  }

  const JsonPlan& plan_;
  const UsualNames& usual_;
  const bool is_caddy_;
  ondemand::parser parser_;
  RecordBuilder builder_;
  Texts* texts_ = nullptr;
  std::string name_;
  std::string lower_;
  std::map<std::string, ColumnUse, std::less<>> uses_;
};

class JsonFormat final : public LineFormat {
 public:
  explicit JsonFormat(JsonPlan plan) : plan_(std::move(plan)) {}
  std::string_view name() const override { return plan_.name; }
  std::unique_ptr<LineParser> MakeParser() const override {
    return std::make_unique<JsonParser>(plan_);
  }

 private:
  const JsonPlan plan_;
};

// NOLINTNEXTLINE(misc-no-recursion): as deep as objects are nested, which is bounded.
bool ListNames(ondemand::value& value, const std::string& name, int depth,
               std::vector<std::string>& names) {
  ondemand::object object;
  if (depth < kDeepest && value.get_object().get(object) == simdjson::SUCCESS) {
    for (auto field_or_error : object) {
      ondemand::field field;
      std::string_view key;
      if (std::move(field_or_error).get(field) != simdjson::SUCCESS ||
          field.unescaped_key().get(key) != simdjson::SUCCESS) {
        return false;
      }
      const std::string inner = name.empty() ? std::string(key) : name + "." + std::string(key);
      if (!ListNames(field.value(), inner, depth + 1, names)) return false;
    }
    return true;
  }
  ondemand::array array;
  names.push_back(value.get_array().get(array) == simdjson::SUCCESS ? name + ".0" : name);
  return true;
}

}  // namespace

std::unique_ptr<LineFormat> MakeJsonFormat(std::string_view name, const ColumnNames& names) {
  JsonPlan plan{.name = std::string(name), .names = names, .wanted = names.wanted.size()};
  for (const std::span<const std::string_view> usual : UsualNamesOf(name)) {
    for (const std::string_view column : usual) plan.Add(column);
  }
  for (const auto& [field, column] : names.named) plan.Add(column);
  for (const std::string& column : names.wanted) plan.Add(column);
  return std::make_unique<JsonFormat>(std::move(plan));
}

std::vector<std::string> ColumnsOfJson(std::string_view line) {
  std::vector<std::string> names;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::value value;
  const simdjson::padded_string_view padded(line.data(), line.size(),
                                            line.size() + simdjson::SIMDJSON_PADDING);
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_value().get(value) != simdjson::SUCCESS || !ListNames(value, "", 0, names)) {
    names.clear();
  }
  return names;
}

}  // namespace weir::lab
