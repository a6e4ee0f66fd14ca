// Where a shared store is, as a policy says it:
//
//   redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]
//   redis+unix://[USER[:PASSWORD]@]/PATH[?db=DATABASE]
//   redis+cluster://[USER[:PASSWORD]@]HOST[:PORT],HOST[:PORT]
//   redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT],HOST[:PORT]/NAME[/DATABASE]
//
// With rediss for redis it is spoken to through TLS, and ?ca=FILE&cert=FILE&key=FILE&
// server_name=NAME&verify=no may follow. What the sentinels themselves ask for is ?sentinel_user=
// &sentinel_password=. Bytes that mean something here are written as %XX. A password may be
// env:NAME or file:PATH instead: where it is rather than what it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weir/result.h>

namespace weir {

struct StoreLogin {
  std::string user{};         // Empty: the default user.
  std::string password{};     // Empty: none. Never part of a message.
  bool by_reference = false;  // The password is where the password is: env:NAME or file:PATH.

  friend bool operator==(const StoreLogin&, const StoreLogin&) = default;
};

struct StoreHost {
  std::string name{};  // Or an address, without brackets.
  std::uint16_t port = 0;

  friend bool operator==(const StoreHost&, const StoreHost&) = default;
};

struct StoreAddress {
  enum class Kind : std::uint8_t { kServer, kUnix, kCluster, kSentinel };

  Kind kind = Kind::kServer;
  std::vector<StoreHost> hosts{};  // One of a server, none of a unix socket.
  std::string path{};              // kUnix.
  StoreLogin login{};
  int database = 0;
  std::string master_name{};    // kSentinel,
  StoreLogin sentinel_login{};  // likewise.

  bool tls = false;
  std::string ca_file{};
  std::string certificate{};
  std::string key{};
  std::string server_name{};
  bool verify = true;

  // The error says what is wrong, and holds nothing of a password.
  [[nodiscard]] static Result<StoreAddress> Parse(std::string_view text);

  // Those of passwords and certificates, as they are written.
  std::vector<std::string> Files() const;

  // For people: without user, password and settings.
  std::string ToString() const;

  friend bool operator==(const StoreAddress&, const StoreAddress&) = default;
};

// Whether what is counted under one list of addresses, `memory` included, is known under the other:
// by other names, other passwords or some other seeds of a cluster it is.
bool KeepSameState(const std::vector<std::string>& a, const std::vector<std::string>& b);

// What a message may say of an address that makes no sense: the part before ://, if anything.
std::string SchemeOf(std::string_view text);

}  // namespace weir
