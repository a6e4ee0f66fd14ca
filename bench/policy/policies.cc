#include "policies.h"

#include <utility>

#include "harness/require.h"
#include "requests.h"

namespace weir::bench {
namespace {

RuleSpec EndpointRule(std::size_t area, const KeyPart& user) {
  const std::string name = "area" + std::to_string(area);
  const std::string path = "/api/v1/" + name;
  switch (KindOf(area)) {
    case AreaKind::kList:
      return {.name = name,
              .match = {{"path", {path + "/list"}}, {"method", {"GET"}}},
              .key = {user, "method"}};
    case AreaKind::kItem:
      return {.name = name,
              .match = {{"path", {path + "/{id}"}}, {"method", {"GET", "HEAD"}}},
              .key = {user, "path.id"}};
    case AreaKind::kBelow:
      return {.name = name, .match = {{"path", {path + "/**"}}}, .key = {user, "host"}};
    default:
      return {.name = name,
              .match = {{"header.x-client", {"app" + std::to_string(area)}}, {"path", {"/api/**"}}},
              .key = {user, "header.x-client"}};
  }
}

// Rules of all kinds that none of the requests meets: those that others are like are mixed with
// those that share a path, a method or the name of a header with many requests.
Match OtherMatch(std::size_t number) {
  const std::string n = std::to_string(number);
  switch (number % 12) {
    case 0:
      return {{"path", {"/api/v1/area" + std::to_string(number / 12 % kAreas) + "/{id}"}},
              {"method", {"PATCH"}},
              {"tier", {"t" + n}}};
    case 1:
      return {{"path", {"/admin/section" + n + "/**"}}};
    case 2:
      return {{"host", {"tenant" + n + ".example.org"}}, Present("user")};
    case 3:
      return {{"tier", {"partner" + n}}, Present("user")};
    case 4:
      return {{"header.x-client", {"bot" + n}}, {"path", {"/**"}}};
    case 5:
      return {{"ip",
               {"10." + std::to_string(number / 256 % 256) + "." + std::to_string(number % 256) +
                ".0/24"}}};
    case 6:
      return {{"user", {"vip" + n, "guest" + n}}, {"path", {"/api/**"}}};
    case 7:
      return {{"path", {"/{tenant}/reports" + n + "/*"}}, Present("user")};
    case 8:
      return {{"path", {"/login" + n, "/register" + n, "/reset" + n}}, {"method", {"POST"}}};
    case 9:
      return {{"cookie.theme", {"theme" + n}}, {"method", {"GET"}}};
    case 10:
      return {{"path", {"/api/v2/resource" + n + "/{id}"}}, Present("api_key")};
    default:
      return {{"org", {"org" + n}}, {"method", {"POST", "PUT"}}};
  }
}

RuleSpec OtherRule(std::size_t number) {
  return {.name = "other" + std::to_string(number),
          .match = OtherMatch(number),
          .key = {number % 2 == 0 ? "ip" : "user"}};
}

}  // namespace

PolicySpec MakeSpec(const PolicyOptions& options) {
  KeyAttribute user("user");
  user.hash = options.hashed;
  PolicySpec spec;
  spec.trusted_proxies = {std::string(kProxy)};
  spec.identity = {{"user", {.from = "header.x-user-id"}},
                   {"tier", {.from = "header.x-tier", .fallback = "free"}}};
  spec.memory.cap = std::int64_t{1} << 30;
  auto& rules = spec.rules;
  if (options.hits != Hits::kUser) rules.push_back({.name = "per-ip", .key = {"ip"}});
  rules.push_back({.name = "per-user", .match = {Present("user")}, .key = {user}});
  if (options.hits == Hits::kSame) {
    rules.push_back(
        {.name = "area",
         .match = {{"path", {"/api/v1/{area}/**"}}, {"method", {"GET", "POST", "PUT", "DELETE"}}},
         .key = {user, "path.area"}});
  } else if (options.hits == Hits::kEndpoint) {
    for (std::size_t area = 0; area < kAreas; ++area) rules.push_back(EndpointRule(area, user));
  }
  while (rules.size() < options.rules) rules.push_back(OtherRule(rules.size()));
  for (RuleSpec& rule : rules) rule.limit = options.limit;
  return spec;
}

Policy MakePolicy(const PolicyOptions& options) {
  const PolicyReport report = Policy::Make(MakeSpec(options));
  Require(report.policy.has_value(), "the policy has no errors");
  Require(report.policy->spec().rules.size() == options.rules, "it has as many rules as it should");
  return *report.policy;
}

}  // namespace weir::bench
