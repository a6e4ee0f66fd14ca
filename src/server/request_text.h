// A request written down as JSON, as those who ask for a decision over HTTP write it:
//
//   {"ip": "203.0.113.9", "user": "ann", "method": "POST", "path": "/auth/login",
//    "headers": {"x-query-cost": "5"}, "cost": 2, "rules": ["per-ip"]}
//
// With "peer", the address at the other end of the connection, who is asking is not stated but
// found from the headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/identity.h>
#include <weir/request.h>
#include <weir/result.h>

namespace weir {

struct RequestText {
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  std::optional<std::string> peer{};
  std::string ip{};
  std::string user{};
  std::string api_key{};
  std::string org{};
  std::string tier{};
  std::string method{};
  std::string path{};
  std::string host{};
  std::string domain{};
  Pairs headers{};
  Pairs cookies{};
  Pairs query{};
  Pairs descriptors{};
  std::int64_t cost = 1;
  std::vector<std::string> rules{};
};

// The error names the field and what it should be; never its value, which may be a secret.
Result<RequestText> ParseRequestText(std::string_view json);

// The same as the views that an engine takes. Refers to the text, which must stay.
class RequestViews {
 public:
  explicit RequestViews(const RequestText& text);

  Request AsRequest() const;
  Incoming AsIncoming() const;
  std::span<const std::string_view> rules() const { return rules_; }

 private:
  const RequestText& text_;
  std::vector<NamedValue> headers_, cookies_, query_, descriptors_;
  std::vector<std::string_view> rules_;
};

}  // namespace weir
