#include "policy/store_address.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "limit/limit_words.h"
#include "policy/ascii.h"

namespace weir {
namespace {

constexpr std::uint16_t kRedisPort = 6'379;
constexpr std::uint16_t kSentinelPort = 26'379;
constexpr std::size_t kLongestHost = 253;
constexpr std::size_t kLongestPath = 107;  // What a socket's address has room for.
constexpr int kMostDatabases = 65'536;
constexpr std::string_view kAfterScheme = "://";

struct Scheme {
  std::string_view name;
  StoreAddress::Kind kind;
  bool tls;
};
constexpr std::array<Scheme, 8> kSchemes = {{
    {"redis", StoreAddress::Kind::kServer, false},
    {"rediss", StoreAddress::Kind::kServer, true},
    {"redis+unix", StoreAddress::Kind::kUnix, false},
    {"unix", StoreAddress::Kind::kUnix, false},
    {"redis+cluster", StoreAddress::Kind::kCluster, false},
    {"rediss+cluster", StoreAddress::Kind::kCluster, true},
    {"redis+sentinel", StoreAddress::Kind::kSentinel, false},
    {"rediss+sentinel", StoreAddress::Kind::kSentinel, true},
}};

std::unexpected<Error> Wrong(std::string message) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
}

// None if it is no such encoding, or holds a byte 0.
std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (decoded.contains('\0')) return std::nullopt;
  return decoded;
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

// Between brackets; whether it is an address is seen when it is looked up.
bool IsBracketed(std::string_view text) {
  const auto fits = [](char c) { return HexValue(c) >= 0 || c == ':' || c == '.'; };
  return !text.empty() && std::ranges::all_of(text, fits);
}

struct Halves {
  std::string_view first;
  std::string_view second;
  bool found = false;
};
Halves Split(std::string_view text, char at) {
  const std::size_t place = text.find(at);
  if (place == std::string_view::npos) return {.first = text, .second = {}};
  return {.first = text.substr(0, place), .second = text.substr(place + 1), .found = true};
}

class AddressReader {
 public:
  // What follows ://.
  Result<StoreAddress> Read(const Scheme& scheme, std::string_view rest) {
    address_.kind = scheme.kind;
    address_.tls = scheme.tls;
    // The user's part comes first, because a password may hold whatever the others are told apart
    // by: the path of a file has slashes.
    rest = ReadLogin(rest);
    const auto [place, settings, has_settings] = Split(rest, '?');
    if (scheme.kind == StoreAddress::Kind::kUnix) {
      ReadPath(place);
    } else {
      ReadHostsAndNames(place);
    }
    if (has_settings) ReadSettings(settings);
    if (address_.certificate.empty() != address_.key.empty()) Complain("cert and key go together");
    if (!complaint_.empty()) return Wrong(complaint_);
    return std::move(address_);
  }

 private:
  void Complain(std::string message) {
    if (complaint_.empty()) complaint_ = std::move(message);
  }

  // What is left of it.
  std::string_view ReadLogin(std::string_view rest) {
    std::size_t end = std::string_view::npos;
    if (address_.kind == StoreAddress::Kind::kUnix) {
      if (!rest.starts_with('/')) end = rest.find("@/");
    } else {
      const std::size_t settings = rest.find('?');
      end = rest.substr(0, settings).rfind('@');
      const bool unclear = end == std::string_view::npos && settings != std::string_view::npos &&
                           rest.find('@', settings) != std::string_view::npos;
      if (unclear) {
        Complain(
            "an @ stands behind a ?; write %3F for one in a password, and %40 for an @ elsewhere");
      }
    }
    if (end == std::string_view::npos) return rest;
    const auto [user, password, has_password] = Split(rest.substr(0, end), ':');
    if (const std::optional<std::string> decoded = PercentDecoded(user)) {
      address_.login.user = *decoded;
    } else {
      Complain("the user holds a % that is not followed by two digits; write %25 for it");
    }
    if (has_password) ReadPassword(password, address_.login);
    const bool has_user = !address_.login.user.empty();
    if (has_user && address_.login.password.empty()) {
      Complain("there is a user, but no password; write USER:env:NAME@");
    }
    return rest.substr(end + 1);
  }

  void ReadPassword(std::string_view text, StoreLogin& login) {
    const auto names = [&](std::string_view scheme) {
      return text.starts_with(scheme) && text.size() > scheme.size();
    };
    login.by_reference = names("env:") || names("file:");
    std::optional<std::string> decoded = PercentDecoded(text);
    if (!decoded) {
      return Complain(
          "the password holds a % that is not followed by two digits; write %25 for it");
    }
    login.password = *std::move(decoded);
  }

  void ReadPath(std::string_view text) {
    const std::optional<std::string> path = PercentDecoded(text);
    if (!path || !path->starts_with('/') || path->size() < 2) {
      return Complain("a unix socket has an absolute path; write redis+unix:///run/redis.sock");
    }
    if (path->size() > kLongestPath) {
      return Complain("the path of a unix socket has at most " + std::to_string(kLongestPath) +
                      " bytes");
    }
    address_.path = *path;
  }

  void ReadHostsAndNames(std::string_view text) {
    const auto [hosts, names, has_names] = Split(text, '/');
    ReadHosts(hosts);
    switch (address_.kind) {
      case StoreAddress::Kind::kSentinel: {
        const auto [name, database, has_database] = Split(names, '/');
        ReadMasterName(name);
        if (has_database) ReadDatabase(database);
        break;
      }
      case StoreAddress::Kind::kCluster:
        if (!names.empty()) Complain("a cluster has no databases; remove what follows the hosts");
        break;
      default:
        if (!names.empty()) ReadDatabase(names);
        break;
    }
  }

  void ReadHosts(std::string_view text) {
    if (text.empty()) return Complain("no host; write HOST:PORT");
    while (true) {
      const auto [host, others, has_others] = Split(text, ',');
      ReadHost(host);
      if (!has_others) break;
      text = others;
    }
    const bool is_one = address_.kind == StoreAddress::Kind::kServer;
    if (is_one && address_.hosts.size() > 1) {
      Complain(
          "several hosts; write redis+cluster:// or redis+sentinel://, or a list of shards: "
          "[redis://a, redis://b]");
    }
  }

  void ReadHost(std::string_view text) {
    StoreHost host{
        .name = "",
        .port = address_.kind == StoreAddress::Kind::kSentinel ? kSentinelPort : kRedisPort};
    std::string_view name = text;
    std::string_view port;
    bool has_port = false;
    bool good = false;
    if (text.starts_with('[')) {
      const std::size_t end = text.find(']');
      name = text.substr(1, end == std::string_view::npos ? end : end - 1);
      const std::string_view behind =
          end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      has_port = behind.starts_with(':');
      if (has_port) port = behind.substr(1);
      good = end != std::string_view::npos && IsBracketed(name) && (behind.empty() || has_port);
    } else {
      const Halves halves = Split(text, ':');
      name = halves.first;
      port = halves.second;
      has_port = halves.found;
      good = !name.empty() && std::ranges::all_of(name, IsHostCharacter);
    }
    if (!good || name.size() > kLongestHost) {
      // Not quoted: in an address without an @ it may be a password.
      return Complain("what stands for a host is none; write HOST:PORT or [ADDRESS]:PORT");
    }
    if (has_port) {
      const std::optional<std::uint16_t> number = NumberOf<std::uint16_t>(port);
      if (!number || *number == 0) {
        return Complain("what stands behind the host is no port; write 1 to 65535");
      }
      host.port = *number;
    }
    host.name = name;
    if (std::ranges::find(address_.hosts, host) != address_.hosts.end()) {
      return Complain(Quoted(text) + " is named twice; remove one of them");
    }
    address_.hosts.push_back(std::move(host));
  }

  void ReadMasterName(std::string_view text) {
    const std::optional<std::string> name = PercentDecoded(text);
    if (!name || name->empty()) {
      return Complain("what the sentinels watch has a name; write it behind the hosts: /mymaster");
    }
    address_.master_name = *name;
  }

  void ReadDatabase(std::string_view text) {
    const std::optional<int> number = NumberOf<int>(text);
    if (!number || *number < 0 || *number >= kMostDatabases) {
      return Complain(Quoted(text) + " is no database; write a number from 0 on");
    }
    address_.database = *number;
  }

  void ReadSettings(std::string_view text) {
    while (!text.empty()) {
      const auto [setting, others, has_others] = Split(text, '&');
      const auto [name, value, has_value] = Split(setting, '=');
      ReadSetting(name, value);
      text = others;
    }
  }

  void ReadSetting(std::string_view name, std::string_view value) {
    const bool sentinel = address_.kind == StoreAddress::Kind::kSentinel;
    if (sentinel && name == "sentinel_password")
      return ReadPassword(value, address_.sentinel_login);
    std::optional<std::string> decoded = PercentDecoded(value);
    if (!decoded || decoded->empty())
      return Complain(Quoted(name) + " has no value that makes sense");
    if (sentinel && name == "sentinel_user") {
      address_.sentinel_login.user = *std::move(decoded);
      return;
    }
    if (name == "db" && address_.kind == StoreAddress::Kind::kUnix) return ReadDatabase(*decoded);
    std::string* const place = name == "ca"            ? &address_.ca_file
                               : name == "cert"        ? &address_.certificate
                               : name == "key"         ? &address_.key
                               : name == "server_name" ? &address_.server_name
                                                       : nullptr;
    const bool about_tls = place != nullptr || name == "verify";
    if (about_tls && !address_.tls) {
      return Complain(Quoted(name) + " is for TLS; write rediss for redis, or remove it");
    }
    if (place != nullptr) {
      *place = *std::move(decoded);
    } else if (name == "verify") {
      if (*decoded != "yes" && *decoded != "no") return Complain("verify is yes or no");
      address_.verify = *decoded == "yes";
    } else {
      Complain(Quoted(name) + " is no setting of this kind of address");
    }
  }

  StoreAddress address_;
  std::string complaint_;
};

}  // namespace

std::string SchemeOf(std::string_view text) {
  const std::size_t end = text.find(kAfterScheme);
  if (end == std::string_view::npos) return "";
  const std::string_view scheme = text.substr(0, end);
  const auto fits = [](char c) { return IsHostCharacter(c) || c == '+'; };
  return std::ranges::all_of(scheme, fits) ? std::string(scheme) + std::string(kAfterScheme) : "";
}

Result<StoreAddress> StoreAddress::Parse(std::string_view text) {
  const std::size_t end = text.find(kAfterScheme);
  const auto found = std::ranges::find(kSchemes, text.substr(0, end), &Scheme::name);
  const std::string_view rest =
      end == std::string_view::npos ? std::string_view() : text.substr(end + kAfterScheme.size());
  if (found == kSchemes.end() || rest.empty()) {
    const std::string scheme = SchemeOf(text);
    return Wrong((scheme.empty() ? "this" : Quoted(scheme)) +
                 " is no store; write memory, or redis://HOST:PORT, rediss://, redis+unix://, "
                 "redis+cluster:// or redis+sentinel://");
  }
  return AddressReader().Read(*found, rest);
}

namespace {

bool IsSamePlace(const StoreAddress& a, const StoreAddress& b) {
  if (a.kind != b.kind || a.database != b.database || a.master_name != b.master_name) return false;
  if (a.kind == StoreAddress::Kind::kServer || a.kind == StoreAddress::Kind::kUnix) {
    return a.hosts == b.hosts && a.path == b.path;
  }
  return std::ranges::any_of(a.hosts, [&](const StoreHost& host) {
    return std::ranges::find(b.hosts, host) != b.hosts.end();
  });
}

}  // namespace

bool KeepSameState(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a == b) return true;
  const auto parse = [](const std::vector<std::string>& texts) {
    std::vector<StoreAddress> addresses;
    for (const std::string& text : texts) {
      if (Result<StoreAddress> address = StoreAddress::Parse(text)) {
        addresses.push_back(*std::move(address));
      }
    }
    return addresses;
  };
  // `memory` is no address, so it has none.
  const auto is_same = [](const StoreAddress& x, const StoreAddress& y) {
    return IsSamePlace(x, y);
  };
  return std::ranges::is_permutation(parse(a), parse(b), is_same);
}

std::vector<std::string> StoreAddress::Files() const {
  constexpr std::string_view kFile = "file:";
  std::vector<std::string> files;
  for (const StoreLogin& of : {login, sentinel_login}) {
    if (!of.by_reference || !of.password.starts_with(kFile)) continue;
    files.push_back(of.password.substr(kFile.size()));
  }
  for (const std::string& file : {ca_file, certificate, key}) {
    if (!file.empty()) files.push_back(file);
  }
  return files;
}

std::string StoreAddress::ToString() const {
  const auto scheme = std::ranges::find_if(
      kSchemes, [&](const Scheme& of) { return of.kind == kind && of.tls == tls; });
  std::string text = std::string(scheme->name) + std::string(kAfterScheme) + path;
  for (const StoreHost& host : hosts) {
    if (&host != &hosts.front()) text += ',';
    const bool v6 = host.name.contains(':');
    text += (v6 ? '[' + host.name + ']' : host.name) + ':' + std::to_string(host.port);
  }
  if (!master_name.empty()) text += '/' + master_name;
  const std::string number = std::to_string(database);
  if (database != 0) text += (kind == Kind::kUnix ? "?db=" : "/") + number;
  return text;
}

}  // namespace weir
