#include "frontend/http/request_body.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <weir/limit.h>

#include "frontend/decision_fields.h"
#include "frontend/http/body_fields.h"
#include "frontend/http/plain_body.h"
#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/spec_reader.h"

namespace weir {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::SUCCESS;

bool IsClosing(char c) noexcept { return c == ']' || c == '}'; }

constexpr std::string_view kJsonBlanks = " \t\r\n";

// The brackets of a text that begins with one.
struct JsonShape {
  std::size_t begin = 0;
  std::optional<std::size_t> end{};  // Behind the last one; none if it is missing.
  std::size_t depth = 0;             // At most.
};
JsonShape ShapeOf(std::string_view json) noexcept {
  JsonShape shape{.begin = std::min(json.find_first_not_of(kJsonBlanks), json.size())};
  std::size_t open = 0;
  bool in_text = false;
  for (std::size_t i = shape.begin; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      shape.depth = std::max(shape.depth, ++open);
    } else if ((c == '}' || c == ']') && open != 0) {
      --open;
      if (open > 0) continue;
      shape.end = i + 1;
      break;
    }
  }
  return shape;
}

}  // namespace

class RequestBodyReader::Parser {
 public:
  Parser() {
    // Should that fail, reading will say so.
    if (parser_.allocate(kFirstCapacity) != SUCCESS) return;
  }

  std::optional<Error> Read(const Text& text, const Form& form, RequestBody& body) {
    ondemand::object object;
    form_ = form;
    problem_.reset();
    item_ = kNoItem;
    if (text.json.empty()) return Invalid("the body is empty: write a JSON object, {}");
    if (Open(text) && document_.get_object().get(object) != SUCCESS &&
        !FailByShape(text.json, '{')) {
      NotAnObject();
    }
    if (!problem_ && ReadObject(object, body)) CheckEnd();
    return std::move(problem_);
  }

  std::optional<Error> ReadList(const Text& text, const Form& form, std::size_t most,
                                std::vector<RequestBody>& bodies) {
    ondemand::array array;
    form_ = form;
    problem_.reset();
    item_ = kNoItem;
    if (text.json.empty()) return Invalid("the body is empty: write a list of JSON objects, [{}]");
    if (Open(text) && document_.get_array().get(array) != SUCCESS && !FailByShape(text.json, '[')) {
      Fail("the body is no JSON array: write [{\"ip\": \"203.0.113.9\"}]");
    }
    if (!problem_ && ReadItems(array, most, bodies)) {
      item_ = kNoItem;
      CheckEnd();
    }
    return std::move(problem_);
  }

 private:
  static constexpr std::size_t kNoItem = static_cast<std::size_t>(-1);
  static constexpr std::size_t kFirstCapacity = 2048;
  static constexpr std::size_t kMostDepth = 64;  // Far more than any body has.

  static Error Invalid(std::string message) {
    return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
  }
  bool Fail(std::string message) {
    if (!problem_) problem_ = Invalid(std::move(message));
    return false;
  }
  bool FailAt(std::string_view place, std::string_view what) {
    std::string message;
    if (item_ != kNoItem) message.append("[").append(std::to_string(item_)).append("].");
    return Fail(message.append(place).append(": ").append(what));
  }
  bool NotJson() {
    const char* at = nullptr;
    const bool known = document_.current_location().get(at) == SUCCESS && at >= start_;
    if (!known) return Fail("the body is no JSON");
    return Fail("the body is no JSON from character " + std::to_string(at - start_ + 1) + " on");
  }
  bool MoreBehind(std::ptrdiff_t at) {
    return Fail("the body goes on behind its end, from character " + std::to_string(at + 1) +
                " on: send one JSON value and nothing else");
  }
  // For a text that cannot be read as a whole: whether it can be told why by its beginning, its
  // brackets and its end. Begins with `open` if it is to be the right kind of value.
  bool FailByShape(std::string_view json, char open) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (json.starts_with(kByteOrderMark)) {
      return !Fail("the body begins with a byte order mark: leave it out");
    }
    const JsonShape shape = ShapeOf(json);
    if (shape.depth > kMostDepth) return !Fail("the body is nested too deep");
    if (open == '\0' || shape.begin == json.size() || json[shape.begin] != open) return false;
    if (!shape.end)
      return !Fail("the body is no JSON: it ends before a bracket or a quote is closed");
    const std::size_t behind = json.find_first_not_of(kJsonBlanks, *shape.end);
    return behind != std::string_view::npos && !MoreBehind(static_cast<std::ptrdiff_t>(behind));
  }
  bool NotAnObject() {
    return Fail((item_ == kNoItem ? "the body" : "item " + std::to_string(item_) + " of the list") +
                " is no JSON object: write {\"ip\": \"203.0.113.9\"}");
  }

  bool Open(const Text& text) {
    start_ = text.json.data();
    std::size_t room = text.json.size() + text.behind;
    // The parser looks at the byte behind a text, and would say something else of a wrong one if a
    // bracket is there, which belongs to the next request.
    const bool misleads = text.behind > 0 && IsClosing(text.json.data()[text.json.size()]);
    if (text.behind < simdjson::SIMDJSON_PADDING || misleads) {
      padded_.assign(text.json).append(simdjson::SIMDJSON_PADDING, ' ');
      start_ = padded_.data();
      room = padded_.size();
    }
    const auto error = parser_.iterate(simdjson::padded_string_view(start_, text.json.size(), room))
                           .get(document_);
    if (error == SUCCESS) return true;
    if (FailByShape(text.json, '\0')) return false;
    return Fail(error == simdjson::UTF8_ERROR ? "the body is not UTF-8" : "the body is no JSON");
  }

  void CheckEnd() {
    const char* junk = nullptr;
    if (document_.current_location().get(junk) == SUCCESS) MoreBehind(junk - start_);
  }

  bool ReadItems(ondemand::array& array, std::size_t most, std::vector<RequestBody>& bodies) {
    for (auto next : array) {
      ondemand::object object;
      item_ = bodies.size();
      if (item_ == most) {
        problem_ = Error{.code = ErrorCode::kTooLarge,
                         .message = "the list is too long: send at most " + std::to_string(most) +
                                    " requests at once"};
        return false;
      }
      if (next.error() != SUCCESS) return NotJson();
      if (next.get_object().get(object) != SUCCESS) return NotAnObject();
      if (!ReadObject(object, bodies.emplace_back())) return false;
    }
    return true;
  }

  bool ReadObject(ondemand::object& object, RequestBody& body) {
    for (auto next : object) {
      ondemand::field field;
      std::string_view name;
      if (std::move(next).get(field) != SUCCESS) return NotJson();
      if (field.unescaped_key().get(name) != SUCCESS) return NotJson();
      ondemand::value value = field.value();
      if (!ReadField(name, value, body)) return false;
    }
    const BodyFieldSet missing = form_.required & ~body.seen;
    if (missing != 0) {
      return FailAt(kBodyFieldNames[static_cast<std::size_t>(std::countr_zero(missing))],
                    "is missing");
    }
    body.request.headers = body.headers;
    body.request.cookies = body.cookies;
    body.request.query = body.query;
    body.request.descriptors = body.descriptors;
    body.request.rules = body.rules;
    return true;
  }

  bool ReadField(std::string_view name, ondemand::value& value, RequestBody& body) {
    const std::optional<BodyField> field = BodyFieldOf(name);
    if (!field || (SetOf(*field) & form_.allowed) == 0) return UnknownField(name);
    if ((body.seen & SetOf(*field)) != 0) return FailAt(name, "is there twice");
    body.seen |= SetOf(*field);
    if (std::string_view* const text = TextOf(body, *field)) {
      return ReadText(name, value, *text) && (*field != BodyField::kIp || IsAddress(*text));
    }
    if (auto* const pairs = PairsOf(body, *field)) return ReadPairs(name, value, *pairs, body);
    switch (*field) {
      case BodyField::kRules:
        return ReadRules(value, body.rules);
      case BodyField::kCost:
        return ReadNumber(name, value, {.least = 0, .most = kMaxCount}, body.cost);
      case BodyField::kWaitMs:
        return ReadWait(value, body.wait);
      case BodyField::kTtlMs:
        return ReadLength(name, value, {.least = 1, .most = kMostTtlMs}, body.ttl);
      default:
        return ReadReservation(value, body.reservation);
    }
  }

  bool UnknownField(std::string_view name) {
    std::vector<std::string_view> allowed;
    for (BodyFieldSet set = form_.allowed; set != 0; set &= set - 1) {
      allowed.push_back(kBodyFieldNames[static_cast<std::size_t>(std::countr_zero(set))]);
    }
    const auto meant = Nearest(name, allowed);
    const bool is_itself = meant && *meant == name;
    return FailAt(Quoted(name), meant && !is_itself
                                    ? "is not known here; did you mean " + std::string(*meant) + "?"
                                    : "is not known here");
  }

  bool ReadText(std::string_view place, ondemand::value& value, std::string_view& text) {
    switch (value.get_string().get(text)) {
      case SUCCESS:
        return true;
      case simdjson::INCORRECT_TYPE:
        return FailAt(place, "write a text: \"...\"");
      default:
        return NotJson();
    }
  }

  // Anything else would be counted under some key of its own, or under none. Empty is absent.
  bool IsAddress(std::string_view text) {
    return text.empty() || IpAddress::Parse(text) ||
           FailAt(NameOf(BodyField::kIp), "write an address: 203.0.113.9 or 2001:db8::1");
  }

  // A name that is there several times has a list of values.
  bool ReadPairs(std::string_view place, ondemand::value& value, std::vector<NamedValue>& pairs,
                 const RequestBody& body) {
    ondemand::object object;
    if (value.get_object().get(object) != SUCCESS) {
      return FailAt(place, "write names and values: {\"name\": \"value\"}");
    }
    for (auto next : object) {
      ondemand::field field;
      std::string_view name;
      if (std::move(next).get(field) != SUCCESS) return NotJson();
      if (field.unescaped_key().get(name) != SUCCESS) return NotJson();
      for (const NamedValue& pair : pairs) {
        if (pair.name == name) return FailAt(PlaceOf(place, name), "is there twice");
      }
      ondemand::value content = field.value();
      if (!ReadValues(place, name, content, pairs, body)) return false;
    }
    return true;
  }

  bool ReadValues(std::string_view place, std::string_view name, ondemand::value& content,
                  std::vector<NamedValue>& pairs, const RequestBody& body) {
    ondemand::array list;
    if (content.get_array().get(list) != SUCCESS) {
      return ReadPair(place, name, content, pairs, body);
    }
    for (auto item : list) {
      ondemand::value value;
      if (std::move(item).get(value) != SUCCESS) return NotJson();
      if (!ReadPair(place, name, value, pairs, body)) return false;
    }
    return true;
  }

  bool ReadPair(std::string_view place, std::string_view name, ondemand::value& value,
                std::vector<NamedValue>& pairs, const RequestBody& body) {
    const std::size_t count =
        body.headers.size() + body.cookies.size() + body.query.size() + body.descriptors.size();
    if (count == RequestBody::kMostPairs) {
      return FailAt(place, "leave some out: a request may have " +
                               std::to_string(RequestBody::kMostPairs) +
                               " of all headers, cookies, query and descriptors together");
    }
    NamedValue& pair = pairs.emplace_back(NamedValue{.name = name, .value = {}});
    const auto error = value.get_string().get(pair.value);
    if (error == SUCCESS) return true;
    if (error != simdjson::INCORRECT_TYPE) return NotJson();
    return FailAt(PlaceOf(place, name), "write a text: \"...\"");
  }

  static std::string PlaceOf(std::string_view map, std::string_view name) {
    const std::string quoted = Quoted(name);
    const bool plain = quoted.size() == name.size() + 2;
    return std::string(map).append(".").append(plain ? name : std::string_view(quoted));
  }

  bool ReadRules(ondemand::value& value, std::vector<std::string_view>& rules) {
    ondemand::array list;
    if (value.get_array().get(list) != SUCCESS) {
      return FailAt("rules", "write a list of names: [\"per-ip\"]");
    }
    for (auto item : list) {
      ondemand::value name;
      if (std::move(item).get(name) != SUCCESS) return NotJson();
      if (rules.size() == RequestBody::kMostRules) {
        return FailAt("rules",
                      "name at most " + std::to_string(RequestBody::kMostRules) + " rules");
      }
      if (!ReadText("rules", name, rules.emplace_back())) return false;
    }
    return true;
  }

  struct Range {
    std::int64_t least;
    std::int64_t most;
  };
  bool ReadNumber(std::string_view place, ondemand::value& value, const Range& range,
                  std::int64_t& number) {
    const bool whole =
        value.get_int64().get(number) == SUCCESS && number >= range.least && number <= range.most;
    return whole || FailAt(place, "write a whole number, " + std::to_string(range.least) + " to " +
                                      std::to_string(range.most));
  }
  bool ReadLength(std::string_view place, ondemand::value& value, const Range& range,
                  Duration& length) {
    std::int64_t milliseconds = 0;
    if (!ReadNumber(place, value, range, milliseconds)) return false;
    length = std::chrono::milliseconds(milliseconds);
    return true;
  }

  bool ReadWait(ondemand::value& value, Duration& wait) {
    constexpr std::string_view kName = NameOf(BodyField::kWaitMs);
    if (!ReadLength(kName, value, {.least = 0, .most = kMostWaitMs}, wait)) return false;
    return wait == Duration(0) || form_.may_wait || FailAt(kName, "only /v1/check waits; write 0");
  }

  bool ReadReservation(ondemand::value& value, ReservationId& reservation) {
    std::string_view text;
    const auto id = value.get_string().get(text) == SUCCESS ? ParseReservation(text) : std::nullopt;
    if (!id) {
      return FailAt(NameOf(BodyField::kReservation),
                    "write the 16 hexadecimal digits that were given, as a text");
    }
    reservation = *id;
    return true;
  }

  static constexpr std::int64_t kMostWaitMs =
      std::chrono::duration_cast<std::chrono::milliseconds>(kMaxWait).count();
  static constexpr std::int64_t kMostTtlMs =
      std::chrono::duration_cast<std::chrono::milliseconds>(kMostReservationTtl).count();

  ondemand::parser parser_;
  ondemand::document document_;
  std::string padded_;
  const char* start_ = nullptr;
  std::size_t item_ = kNoItem;
  Form form_{};
  std::optional<Error> problem_{};
};

RequestBodyReader::RequestBodyReader() : parser_(std::make_unique<Parser>()) {}
RequestBodyReader::~RequestBodyReader() = default;

std::optional<Error> RequestBodyReader::Read(const Text& text, const Form& form,
                                             RequestBody& body) {
  body.Clear();
  if (ReadPlainBody(text.json, form, body)) return std::nullopt;
  body.Clear();
  return parser_->Read(text, form, body);
}

std::optional<Error> RequestBodyReader::ReadList(const Text& text, const Form& form,
                                                 std::size_t most,
                                                 std::vector<RequestBody>& bodies) {
  bodies.clear();
  return parser_->ReadList(text, form, most, bodies);
}

}  // namespace weir
