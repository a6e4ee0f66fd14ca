#include "store/redis/server_check.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::redis {
namespace {

// The value of "name:value" on a line of its own; empty if there is none.
std::string_view Find(std::string_view info, std::string_view name) noexcept {
  while (!info.empty()) {
    const std::size_t end = std::min(info.find('\n'), info.size());
    std::string_view line = info.substr(0, end);
    info.remove_prefix(std::min(end + 1, info.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return line.substr(name.size() + 1, 64);
    }
  }
  return {};
}

int NumberAt(std::string_view& text) noexcept {
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  if (text.starts_with('.')) text.remove_prefix(1);
  return number;
}

std::optional<WallTime> TimeIn(std::string_view microseconds) noexcept {
  constexpr std::int64_t kLatest = std::int64_t{1} << 53;
  std::int64_t since = 0;
  const char* const end = microseconds.data() + microseconds.size();
  const auto result = std::from_chars(microseconds.data(), end, since);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  if (since <= 0 || since > kLatest) return std::nullopt;
  return WallTime(std::chrono::microseconds(since));
}

}  // namespace

ServerFacts ReadServerFacts(std::string_view info) {
  ServerFacts facts;
  facts.is_known = !info.empty();
  facts.version = Find(info, "redis_version");
  facts.run = Find(info, "run_id");
  facts.eviction = Find(info, "maxmemory_policy");
  facts.keeps_log = Find(info, "aof_enabled") == "1";
  facts.is_replica = Find(info, "role") == "slave";
  std::string_view replicas = Find(info, "connected_slaves");
  facts.replicas = NumberAt(replicas);
  facts.wants_replicas = !Find(info, "min_slaves_good_slaves").empty();
  facts.time = TimeIn(Find(info, "server_time_usec"));
  return facts;
}

bool IsTooOld(const ServerFacts& facts) noexcept {
  if (facts.version.empty()) return false;
  std::string_view version = facts.version;
  const int major = NumberAt(version);
  const int minor = NumberAt(version);
  return std::pair(major, minor) < std::pair(6, 2);
}

std::vector<ServerNotice> CheckServer(const ServerFacts& facts) {
  std::vector<ServerNotice> notices;
  if (!facts.is_known) {
    notices.push_back({"info", "INFO is not allowed, so version and settings are not checked"});
    return notices;
  }
  if (IsTooOld(facts)) {
    notices.push_back({"version", "Redis " + facts.version + " is too old; it is not used. Use " +
                                      std::string(kOldestVersion) + " or later"});
  }
  if (!facts.eviction.empty() && facts.eviction != "noeviction") {
    notices.push_back(
        {"eviction", "WARNING: maxmemory-policy is " + facts.eviction +
                         ": when memory is short the server forgets limits, and each key it "
                         "forgets gets another full burst. Set maxmemory-policy noeviction"});
  }
  if (!facts.keeps_log) {
    notices.push_back(
        {"persistence", "appendonly is off: after a restart every key may have one more burst"});
  }
  if (facts.replicas > 0 && !facts.wants_replicas) {
    notices.push_back({"replicas",
                       "min-replicas-to-write is 0: a master that is cut off goes on counting, and "
                       "what it counted is lost when a replica takes its place"});
  }
  return notices;
}

}  // namespace weir::redis
