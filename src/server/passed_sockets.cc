#include "server/passed_sockets.h"

#include <algorithm>
#include <utility>

#include "limit/limit_words.h"
#include "server/environment.h"

namespace weir {
namespace {

constexpr int kFirstDescriptor = 3;
// Far more than there are protocols. What says that there are more is no service manager.
constexpr std::uint64_t kMostSockets = 1024;

// As many as there are sockets; those that the list does not name are `unknown`, as systemd says.
std::vector<std::string> NamesOf(std::string_view list, std::size_t count) {
  std::vector<std::string> names;
  while (names.size() < count) {
    const std::size_t end = std::min(list.find(':'), list.size());
    names.emplace_back(end == 0 ? "unknown" : list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

// One with such a name is for that protocol, wherever it is bound.
bool IsProtocol(std::string_view name) {
  return name == "http" || name == "resp" || name == "grpc";
}

std::unexpected<Error> Wrong(std::string message) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
}

}  // namespace

Result<PassedSockets> PassedSockets::FromEnvironment() {
  const std::string pid = TakeVariable("LISTEN_PID");
  const std::string count = TakeVariable("LISTEN_FDS");
  const std::string names = TakeVariable("LISTEN_FDNAMES");
  PassedSockets passed;
  if (count.empty() || !IsThisProcess(pid)) return passed;
  const std::optional<std::uint64_t> number = ParseNumber(count);
  if (!number || *number > kMostSockets)
    return Wrong("LISTEN_FDS: " + Quoted(count) + " is no count");
  const Result<void> adopted = passed.Adopt(NamesOf(names, static_cast<std::size_t>(*number)));
  if (!adopted) return std::unexpected(adopted.error());
  return passed;
}

Result<void> PassedSockets::Adopt(const std::vector<std::string>& names) {
  int fd = kFirstDescriptor;
  for (const std::string& name : names) {
    Result<ListeningSocket> socket = ListeningSocket::Adopt(fd++);
    if (!socket) return Wrong("passed socket " + Quoted(name) + ": " + socket.error().message);
    sockets_.emplace_back(Named{.name = name, .socket = std::move(*socket)});
  }
  return {};
}

std::optional<ListeningSocket> PassedSockets::Take(std::string_view protocol,
                                                   const Endpoint& endpoint) {
  auto found = std::ranges::find_if(
      sockets_, [&](const auto& passed) { return passed && passed->name == protocol; });
  if (found == sockets_.end()) {
    found = std::ranges::find_if(sockets_, [&](const auto& passed) {
      return passed && !IsProtocol(passed->name) && passed->socket.IsAt(endpoint);
    });
  }
  if (found == sockets_.end()) return std::nullopt;
  std::optional<ListeningSocket> taken(std::move((*found)->socket));
  found->reset();
  return taken;
}

std::vector<std::string> PassedSockets::left() const {
  std::vector<std::string> texts;
  for (const auto& passed : sockets_) {
    if (passed) texts.push_back(passed->name + " " + passed->socket.endpoint().ToString());
  }
  return texts;
}

}  // namespace weir
