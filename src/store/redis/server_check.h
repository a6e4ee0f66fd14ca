// What people should know about a server that holds limits, from what it says about itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/time.h>

namespace weir::redis {

// What a user must be allowed on servers that hold limits, in the terms of ACL SETUSER. With +info
// the checks here can be made, and with +client|setname CLIENT LIST has a name; a database other
// than the first needs +select, and a cluster +cluster|slots and +asking. Servers before 7.0 have
// no rights for parts of a command: there +client and +cluster.
inline constexpr std::string_view kLeastRights =
    "~weir1:* +evalsha +eval +time +get +mget +set +del +getrange +setrange +strlen +pexpire +zadd "
    "+zremrangebyscore +zcard";

struct ServerFacts {
  std::string version{};  // Empty: not known.
  std::string run{};      // Another after each start of the server.
  std::string eviction{};
  bool keeps_log = false;  // appendonly
  bool is_known = false;   // Whether it told anything.
  bool is_replica = false;
  int replicas = 0;
  bool wants_replicas = false;  // min-replicas-to-write
  std::optional<WallTime> time{};
};

// From what INFO says.
ServerFacts ReadServerFacts(std::string_view info);

// Scripts could not do before this what ours does.
inline constexpr std::string_view kOldestVersion = "6.2";
bool IsTooOld(const ServerFacts& facts) noexcept;

struct ServerNotice {
  std::string_view subject{};
  std::string text{};
};
std::vector<ServerNotice> CheckServer(const ServerFacts& facts);

}  // namespace weir::redis
