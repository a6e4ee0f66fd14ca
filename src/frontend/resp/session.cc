#include "frontend/resp/session.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "frontend/resp/command_list.h"
#include "limit/limit_words.h"

namespace weir::resp {
namespace {

// What clients are told when they ask for the version of Redis: one that has everything they may
// send unasked when they connect.
constexpr std::string_view kRedisVersion = "7.2.0";
constexpr std::size_t kMostNameBytes = 256;

std::uint64_t NextId() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::string_view NameOf(ServiceState::Readiness readiness) noexcept {
  switch (readiness) {
    case ServiceState::Readiness::kStarting:
      return "starting";
    case ServiceState::Readiness::kReady:
      return "ready";
    case ServiceState::Readiness::kDegraded:
      return "degraded";
    case ServiceState::Readiness::kDraining:
      break;
  }
  return "draining";
}

}  // namespace

Session::Session(Exchange& exchange)
    : exchange_(exchange), id_(NextId()), right_(exchange.door().access.WithoutToken()) {}

void Session::Run(const CommandRow& row, Words words, Reply& reply) {
  switch (row.id) {
    case CommandId::kPing:
      return words.size() == 1 ? reply.writer.Simple("PONG") : reply.writer.Bulk(words[1]);
    case CommandId::kEcho:
      return reply.writer.Bulk(words[1]);
    case CommandId::kHello:
      return Hello(words, reply);
    case CommandId::kAuth:
      return Auth(words, reply);
    case CommandId::kClient:
      return Client(words, reply);
    case CommandId::kCommand:
      return ListCommands(words, reply);
    case CommandId::kInfo:
      return reply.writer.Bulk(Info());
    case CommandId::kSelect:
      return words[1] == "0" ? reply.Ok() : reply.Fail("ERR", "DB index is out of range");
    case CommandId::kQuit:
      exchange_.replies().CloseWhenSent();
      return reply.Ok();
    default:  // kReset
      Reset();
      return reply.writer.Simple("RESET");
  }
}

void Session::Reset() {
  version_ = Version::kResp2;
  right_ = exchange_.door().access.WithoutToken();
  name_.clear();
}

bool Session::Present(std::string_view user, std::string_view token, Reply& reply) {
  const Access& access = exchange_.door().access;
  const Right right = access.WithToken(token);
  if (right != Right::kNone) {
    right_ = right;
    return true;
  }
  // As with a Redis that has no password: whoever names a user may present anything.
  const bool none_needed = access.token.empty() && access.manage_token.empty();
  if (none_needed && user == "default") return true;
  if (none_needed && user.empty()) {
    reply.Fail("ERR",
               "AUTH <password> called without any password configured for the default user. Are "
               "you sure your configuration is correct?");
    return false;
  }
  reply.metrics().Refused(Refusal::kToken);
  reply.Fail("WRONGPASS", "invalid username-password pair or user is disabled.");
  return false;
}

void Session::Auth(Words words, Reply& reply) {
  const std::string_view user = words.size() == 3 ? words[1] : std::string_view();
  if (Present(user, words.back(), reply)) reply.Ok();
}

bool Session::CheckName(std::string_view name, Reply& reply) {
  const bool good = name.size() <= kMostNameBytes &&
                    std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
  if (!good) {
    reply.Fail("ERR",
               "Client names cannot contain spaces, newlines or special characters, nor more than "
               "256 bytes.");
  }
  return good;
}

void Session::Hello(Words words, Reply& reply) {
  Version version = version_;
  if (words.size() > 1) {
    if (words[1] != "2" && words[1] != "3") {
      return reply.Fail("NOPROTO", "unsupported protocol version");
    }
    version = words[1] == "3" ? Version::kResp3 : Version::kResp2;
  }
  std::optional<std::string_view> name;
  std::size_t i = 2;
  for (; i < words.size();) {
    if (EqualsUpperCase(words[i], "AUTH") && i + 2 < words.size()) {
      if (!Present(words[i + 1], words[i + 2], reply)) return;
      i += 3;
    } else if (EqualsUpperCase(words[i], "SETNAME") && i + 1 < words.size()) {
      name = words[i + 1];
      if (!CheckName(*name, reply)) return;
      i += 2;
    } else {
      return reply.Fail("ERR", "Syntax error in HELLO option " + Quoted(words[i]));
    }
  }
  if (right_ == Right::kNone) {
    reply.metrics().Refused(Refusal::kToken);
    return reply.Fail("NOAUTH",
                      "HELLO must be called with the client already authenticated, otherwise the "
                      "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
                      "client and select the RESP protocol version at the same time");
  }
  version_ = version;
  if (name) name_ = *name;
  ReplyWriter writer(reply.out(), version_);
  writer.Map(7);
  writer.Bulk("server");
  writer.Bulk("weir");
  writer.Bulk("version");
  writer.Bulk(kRedisVersion);
  writer.Bulk("proto");
  writer.Integer(static_cast<std::int64_t>(version_));
  writer.Bulk("id");
  writer.Integer(static_cast<std::int64_t>(id_));
  writer.Bulk("mode");
  writer.Bulk("standalone");
  writer.Bulk("role");
  writer.Bulk("master");
  writer.Bulk("modules");
  writer.Array(0);
}

void Session::Client(Words words, Reply& reply) {
  const auto is = [&](std::string_view name, std::size_t size) {
    return words.size() == size && EqualsUpperCase(words[1], name);
  };
  if (is("ID", 2)) return reply.writer.Integer(static_cast<std::int64_t>(id_));
  if (is("GETNAME", 2)) return name_.empty() ? reply.writer.Null() : reply.writer.Bulk(name_);
  if (is("INFO", 2)) return reply.writer.Bulk(Line());
  // Of all connections those who ask may know of one: their own.
  if (EqualsUpperCase(words[1], "LIST")) return reply.writer.Bulk(Line());
  if (is("GETREDIR", 2)) return reply.writer.Integer(-1);
  if (is("SETNAME", 3)) {
    if (!CheckName(words[2], reply)) return;
    name_ = words[2];
    return reply.Ok();
  }
  if (is("SETINFO", 4)) return SetInfo(words, reply);
  if (is("NO-EVICT", 3) || is("NO-TOUCH", 3)) {
    const bool good = EqualsUpperCase(words[2], "ON") || EqualsUpperCase(words[2], "OFF");
    return good ? reply.Ok() : reply.Fail("ERR", "syntax error");
  }
  if (is("TRACKING", 3) && EqualsUpperCase(words[2], "OFF")) return reply.Ok();
  reply.Fail("ERR", "unknown subcommand or wrong number of arguments for " + Quoted(words[1]) +
                        ". There are CLIENT ID, INFO, LIST, GETNAME, SETNAME, SETINFO, NO-EVICT, "
                        "NO-TOUCH.");
}

void Session::SetInfo(Words words, Reply& reply) {
  const bool is_name = EqualsUpperCase(words[2], "LIB-NAME");
  if (!is_name && !EqualsUpperCase(words[2], "LIB-VER")) {
    return reply.Fail("ERR", "Unrecognized option " + Quoted(words[2]));
  }
  if (!CheckName(words[3], reply)) return;
  (is_name ? library_name_ : library_version_) = words[3];
  reply.Ok();
}

std::string Session::Line() const {
  std::string line = "id=" + std::to_string(id_);
  line.append(" addr=").append(exchange_.peer()).append(" name=").append(name_);
  line.append(" db=0 resp=").append(version_ == Version::kResp3 ? "3" : "2");
  line.append(" lib-name=").append(library_name_).append(" lib-ver=").append(library_version_);
  return line + "\n";
}

std::string Session::Info() const {
  const Desk& desk = exchange_.door().desk;
  const EngineStats stats = desk.engine.Stats();
  std::string info = "# Server\r\nredis_version:";
  info.append(kRedisVersion);
  info.append("\r\nredis_mode:standalone\r\nserver_name:weir\r\n");
  info.append("\r\n# Persistence\r\nloading:0\r\n");
  info.append("\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n");
  info.append("\r\n# Cluster\r\ncluster_enabled:0\r\n");
  info.append("\r\n# Weir\r\nweir_state:").append(NameOf(desk.state.readiness()));
  info.append("\r\nweir_policy_version:").append(std::to_string(stats.version));
  info.append("\r\nweir_table_entries:").append(std::to_string(stats.store.entries));
  info.append("\r\nweir_table_bytes:").append(std::to_string(stats.store.bytes));
  info.append("\r\nweir_reservations:").append(std::to_string(stats.store.reservations));
  return info + "\r\n";
}

}  // namespace weir::resp
