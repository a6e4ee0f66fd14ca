#include "server/request_text.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include <weir/limit.h>

#include "limit/limit_words.h"
#include "policy/spec_reader.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
struct Member {
  std::string_view name;
  Value RequestText::* member;
  bool of_client = false;  // Says who is asking, or comes from what a peer sends.
};
constexpr std::array<Member<std::string>, 9> kTexts = {{
    {"ip", &RequestText::ip, true},
    {"user", &RequestText::user, true},
    {"api_key", &RequestText::api_key, true},
    {"org", &RequestText::org, true},
    {"tier", &RequestText::tier, true},
    {"method", &RequestText::method},
    {"path", &RequestText::path},
    {"host", &RequestText::host},
    {"domain", &RequestText::domain, true},
}};
constexpr std::array<Member<RequestText::Pairs>, 4> kMaps = {{
    {"headers", &RequestText::headers},
    {"cookies", &RequestText::cookies, true},
    {"query", &RequestText::query, true},
    {"descriptors", &RequestText::descriptors, true},
}};
constexpr std::array<std::string_view, 17> kFields = {
    "peer",   "ip",      "user",    "api_key", "org",         "tier", "method", "path",   "host",
    "domain", "headers", "cookies", "query",   "descriptors", "cost", "rules",  "wait_ms"};

// Where a text stops being JSON.
class SyntaxFinder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    at = position;
    return false;
  }

  std::size_t at = 0;
};

class RequestReader {
 public:
  Result<RequestText> Read(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) {
      SyntaxFinder finder;
      Json::sax_parse(text, &finder);
      return Wrong("is no JSON from character " + std::to_string(finder.at) + " on");
    }
    if (!json.is_object()) return Wrong("is no JSON object: write {\"ip\": \"203.0.113.9\"}");
    for (const auto& [name, value] : json.items()) {
      if (!ReadField(name, value)) return Wrong(problem_);
    }
    if (request_.peer && !SetWithPeer(json)) return Wrong(problem_);
    return std::move(request_);
  }

 private:
  static std::unexpected<Error> Wrong(const std::string& what) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, "the request " + what});
  }
  bool Fail(const std::string& field, const std::string& what) {
    problem_ = "has a wrong field: " + field + ": " + what;
    return false;
  }

  bool ReadField(const std::string& name, const Json& value) {
    for (const auto& [known, member, of_client] : kTexts) {
      if (name == known) return ReadText(name, value, request_.*member);
    }
    for (const auto& [known, member, of_client] : kMaps) {
      if (name == known) return ReadPairs(name, value, request_.*member);
    }
    if (name == "peer") return ReadText(name, value, request_.peer.emplace());
    if (name == "cost") return ReadCost(value);
    if (name == "rules") return ReadRules(value);
    // How long a request would wait changes nothing about which rules apply.
    if (name == "wait_ms" && value.is_number_unsigned()) return true;
    const auto meant = Nearest(name, kFields);
    return Fail(Quoted(name),
                "is not known" + (meant ? "; did you mean " + std::string(*meant) + "?" : ""));
  }

  bool ReadText(const std::string& field, const Json& value, std::string& text) {
    if (!value.is_string()) return Fail(field, "write a text: \"...\"");
    text = value.get<std::string>();
    return true;
  }

  // A name that is there several times has a list of values.
  bool ReadPairs(const std::string& field, const Json& value, RequestText::Pairs& pairs) {
    if (!value.is_object()) return Fail(field, "write names and values: {\"name\": \"value\"}");
    for (const auto& [name, content] : value.items()) {
      const std::string place = std::string(field).append(".").append(name);
      const Json list = content.is_array() ? content : Json::array({content});
      for (const Json& item : list) {
        std::string text;
        if (!ReadText(place, item, text)) return false;
        pairs.emplace_back(name, std::move(text));
      }
    }
    return true;
  }

  bool ReadCost(const Json& value) {
    const bool whole = value.is_number_unsigned() &&
                       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMaxCount);
    if (!whole) return Fail("cost", "write a whole number, 0 to " + std::to_string(kMaxCount));
    request_.cost = value.get<std::int64_t>();
    return true;
  }

  bool ReadRules(const Json& value) {
    if (!value.is_array()) return Fail("rules", "write a list of names: [\"per-ip\"]");
    for (const Json& item : value) {
      if (!ReadText("rules", item, request_.rules.emplace_back())) return false;
    }
    return true;
  }

  // What a peer sends says everything about it.
  bool SetWithPeer(const Json& json) {
    const auto refuse = [&](const auto& fields) {
      for (const auto& field : fields) {
        if (!field.of_client || !json.contains(field.name)) continue;
        Fail(std::string(field.name),
             "with \"peer\" it is found from the headers and the path; leave out one of the two");
        return true;
      }
      return false;
    };
    return !refuse(kTexts) && !refuse(kMaps);
  }

  RequestText request_;
  std::string problem_;
};

std::vector<NamedValue> Views(const RequestText::Pairs& pairs) {
  std::vector<NamedValue> views;
  for (const auto& [name, value] : pairs) views.push_back({.name = name, .value = value});
  return views;
}

}  // namespace

Result<RequestText> ParseRequestText(std::string_view json) { return RequestReader().Read(json); }

RequestViews::RequestViews(const RequestText& text)
    : text_(text),
      headers_(Views(text.headers)),
      cookies_(Views(text.cookies)),
      query_(Views(text.query)),
      descriptors_(Views(text.descriptors)),
      rules_(text.rules.begin(), text.rules.end()) {}

Request RequestViews::AsRequest() const {
  return {.ip = text_.ip,
          .user = text_.user,
          .api_key = text_.api_key,
          .org = text_.org,
          .tier = text_.tier,
          .method = text_.method,
          .path = text_.path,
          .host = text_.host,
          .headers = headers_,
          .cookies = cookies_,
          .query = query_,
          .domain = text_.domain,
          .descriptors = descriptors_,
          .rules = rules_};
}

Incoming RequestViews::AsIncoming() const {
  return {.peer = text_.peer ? std::string_view(*text_.peer) : "",
          .method = text_.method,
          .path = text_.path,
          .host = text_.host,
          .headers = headers_};
}

}  // namespace weir
