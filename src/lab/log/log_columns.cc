#include "lab/log/log_columns.h"

#include <algorithm>

#include "limit/limit_words.h"

namespace weir::lab {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, kFields> kFieldNames = {
    "time", "ip",   "user",       "api_key", "org",  "tier",   "method",
    "path", "host", "user_agent", "status",  "cost", "request"};

// CSV and JSON lines, from whatever wrote them.
constexpr std::string_view kTime[] = {"time",         "ts",        "timestamp",  "@timestamp",
                                      "time_iso8601", "msec",      "time_local", "datetime",
                                      "date",         "start_time"};
constexpr std::string_view kIp[] = {"ip",          "client_ip", "clientip",
                                    "remote_addr", "remote_ip", "remote_host",
                                    "client_addr", "source_ip", "client"};
constexpr std::string_view kUser[] = {"user", "user_id", "userid", "remote_user", "username"};
constexpr std::string_view kApiKey[] = {"api_key", "apikey", "x_api_key"};
constexpr std::string_view kOrg[] = {"org", "org_id", "organization"};
constexpr std::string_view kTier[] = {"tier", "plan"};
constexpr std::string_view kMethod[] = {"method", "request_method", "http_method", "verb"};
constexpr std::string_view kPath[] = {"path", "uri", "url", "request_uri", "request_path"};
constexpr std::string_view kHost[] = {"host", "http_host", "authority", "server_name", "vhost"};
constexpr std::string_view kUserAgent[] = {"user_agent", "http_user_agent", "useragent", "agent"};
constexpr std::string_view kStatus[] = {"status", "status_code", "response_code", "code"};
constexpr std::string_view kCost[] = {"cost"};
constexpr std::string_view kRequestLine[] = {"request", "request_line"};
constexpr UsualNames kPlain = {kTime, kIp,   kUser,      kApiKey, kOrg,  kTier,       kMethod,
                               kPath, kHost, kUserAgent, kStatus, kCost, kRequestLine};

// Envoy's own JSON, and what is usual where it is the gateway of a mesh.
constexpr std::string_view kEnvoyTime[] = {"start_time"};
// The peer is nobody's claim. Of a forwarding list the last is what Envoy itself added.
constexpr std::string_view kEnvoyIp[] = {"downstream_remote_address_without_port",
                                         "downstream_remote_address",
                                         "downstream_direct_remote_address_without_port",
                                         "downstream_direct_remote_address", "x_forwarded_for"};
constexpr std::string_view kEnvoyMethod[] = {"method"};
constexpr std::string_view kEnvoyPath[] = {"path", "x_envoy_original_path"};
constexpr std::string_view kEnvoyHost[] = {"authority", ":authority", "requested_server_name"};
constexpr std::string_view kEnvoyUserAgent[] = {"user_agent"};
constexpr std::string_view kEnvoyStatus[] = {"response_code"};
constexpr UsualNames kEnvoy = {kEnvoyTime,   kEnvoyIp,     kUser,      kApiKey,    kOrg,
                               kTier,        kEnvoyMethod, kEnvoyPath, kEnvoyHost, kEnvoyUserAgent,
                               kEnvoyStatus, kCost,        Names()};

constexpr std::string_view kCaddyTime[] = {"ts"};
// client_ip is what Caddy found behind proxies it trusts.
constexpr std::string_view kCaddyIp[] = {"request.client_ip", "request.remote_ip",
                                         "request.remote_addr"};
constexpr std::string_view kCaddyUser[] = {"user_id"};
constexpr std::string_view kCaddyApiKey[] = {"request.headers.x-api-key.0"};
constexpr std::string_view kCaddyMethod[] = {"request.method"};
constexpr std::string_view kCaddyPath[] = {"request.uri"};
constexpr std::string_view kCaddyHost[] = {"request.host"};
constexpr std::string_view kCaddyUserAgent[] = {"request.headers.user-agent.0"};
constexpr std::string_view kCaddyStatus[] = {"status"};
constexpr UsualNames kCaddy = {
    kCaddyTime, kCaddyIp,   kCaddyUser,      kCaddyApiKey, Names(), Names(), kCaddyMethod,
    kCaddyPath, kCaddyHost, kCaddyUserAgent, kCaddyStatus, Names(), Names()};

constexpr std::string_view kAlbTime[] = {"time"};
constexpr std::string_view kAlbIp[] = {"client:port"};
constexpr std::string_view kAlbHost[] = {"domain_name"};
constexpr std::string_view kAlbUserAgent[] = {"user_agent"};
constexpr std::string_view kAlbStatus[] = {"elb_status_code"};
constexpr std::string_view kAlbRequestLine[] = {"request"};
constexpr UsualNames kAlb = {kAlbTime,   kAlbIp,  Names(),        Names(),  Names(),
                             Names(),    Names(), Names(),        kAlbHost, kAlbUserAgent,
                             kAlbStatus, Names(), kAlbRequestLine};

constexpr std::string_view kCombinedTime[] = {"time_local"};
constexpr std::string_view kCombinedIp[] = {"remote_addr"};
constexpr std::string_view kCombinedUser[] = {"remote_user"};
constexpr std::string_view kCombinedMethod[] = {"method"};
constexpr std::string_view kCombinedPath[] = {"path"};
constexpr std::string_view kCombinedHost[] = {"vhost"};
constexpr std::string_view kCombinedUserAgent[] = {"http_user_agent"};
constexpr std::string_view kCombinedStatus[] = {"status"};
constexpr UsualNames kCombined = {
    kCombinedTime,   kCombinedIp,     kCombinedUser, Names(),       Names(),
    Names(),         kCombinedMethod, kCombinedPath, kCombinedHost, kCombinedUserAgent,
    kCombinedStatus, Names(),         Names()};

bool EqualWithoutCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

}  // namespace

std::optional<Field> FieldNamed(std::string_view name) {
  const auto found = std::ranges::find(kFieldNames, name);
  if (found == kFieldNames.end()) return std::nullopt;
  return static_cast<Field>(found - kFieldNames.begin());
}

std::string NamesOfFields() {
  std::string all;
  for (const std::string_view name : kFieldNames)
    all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

const UsualNames& UsualNamesOf(std::string_view format) {
  if (format == "envoy") return kEnvoy;
  if (format == "caddy") return kCaddy;
  if (format == "alb") return kAlb;
  if (format == "combined") return kCombined;
  return kPlain;
}

bool IsNamedValue(std::string_view field) noexcept {
  return std::ranges::any_of(std::array<std::string_view, 2>{"header.", "cookie."},
                             [&](std::string_view prefix) {
                               return field.starts_with(prefix) && field.size() > prefix.size();
                             });
}

Result<void> CheckNames(const ColumnNames& names) {
  for (const auto& [field, column] : names.named) {
    if (!FieldNamed(field) && !IsNamedValue(field)) {
      std::string message = "--column ";
      message += field;
      message += "=" + column;
      message += ": there is no ";
      message += Quoted(field) + "; there are ";
      message += NamesOfFields() + ", header.NAME and cookie.NAME";
      return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
    }
    if (column.empty()) {
      return std::unexpected(Error{ErrorCode::kInvalidArgument,
                                   "--column " + field + "=: write the name of a column"});
    }
  }
  return {};
}

ColumnUse UseOf(std::string_view column, const UsualNames& usual, const ColumnNames& names) {
  ColumnUse use;
  const auto want = [&](std::string_view name) {
    for (std::size_t i = 0; i < names.wanted.size(); ++i) {
      if (EqualWithoutCase(names.wanted[i], name)) {
        use.wanted.push_back(static_cast<std::uint32_t>(i));
      }
    }
  };
  want(column);
  for (const auto& [field, its_column] : names.named) {
    if (its_column != column) continue;
    if (const std::optional<Field> known = FieldNamed(field)) {
      use.fields.push_back({.field = *known, .rank = 0});
    } else {
      want(field);
    }
  }
  for (std::size_t i = 0; i < kFields; ++i) {
    const bool is_named = std::ranges::any_of(
        names.named, [&](const auto& named) { return named.first == kFieldNames[i]; });
    if (is_named) continue;
    for (std::size_t rank = 0; rank < usual[i].size(); ++rank) {
      if (!EqualWithoutCase(usual[i][rank], column)) continue;
      use.fields.push_back(
          {.field = static_cast<Field>(i), .rank = static_cast<std::uint8_t>(rank)});
    }
  }
  return use;
}

}  // namespace weir::lab
