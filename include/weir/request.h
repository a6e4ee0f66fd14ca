// What is known of a request when it is to be limited. Plain views: nothing is copied or checked
// here, and what they point to must stay until the answer is there.
#pragma once

#include <span>
#include <string_view>

namespace weir {

struct NamedValue {
  std::string_view name;
  std::string_view value;
};

// Every part may be left out. An empty value counts as absent: nobody is called "".
//
//   engine.Check({.ip = "203.0.113.9", .user = "ann", .method = "POST", .path = "/orders"});
struct Request {
  std::string_view ip{};  // The client's, as text; see Identity for how to find it behind proxies.
  std::string_view user{};
  std::string_view api_key{};
  std::string_view org{};
  std::string_view tier{};
  std::string_view method{};
  std::string_view path{};  // As it was sent; a query behind it is cut off.
  std::string_view host{};  // A port behind it is cut off.

  std::span<const NamedValue> headers{};  // Names in any case.
  std::span<const NamedValue> cookies{};
  std::span<const NamedValue> query{};

  std::string_view domain{};  // Envoy's, with the entries of one descriptor.
  std::span<const NamedValue> descriptors{};

  // Whether the headers come from somebody who may state a cost. Identity::Identify says so; those
  // who fill in a request by hand speak for themselves.
  bool trusted = true;

  // Only these rules, if there are any. Lists and the other conditions of a rule still apply.
  std::span<const std::string_view> rules{};
};

}  // namespace weir
