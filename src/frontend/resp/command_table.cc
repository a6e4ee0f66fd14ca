#include "frontend/resp/command_table.h"

#include <array>

namespace weir::resp {
namespace {

constexpr std::array<CommandRow, 22> kCommands = {{
    {"CL.THROTTLE", CommandId::kClThrottle, Right::kUse, 5, 6, 1,
     "Takes from a bucket: key max_burst count period [quantity]; replies as redis-cell does"},
    {"WEIR.CHECK", CommandId::kWeirCheck, Right::kUse, 2, kAnyNumber, 0,
     "Decides on a request: rule|* attribute value ... [@cost n] [@wait_ms n] "
     "[@http json|problem]"},
    {"WEIR.LIMIT", CommandId::kWeirLimit, Right::kUse, 3, 8, 1,
     "Counts a key under a limit given here: key limit [algorithm] [@cost n] "
     "[@http json|problem]"},
    {"THROTTLE", CommandId::kThrottle, Right::kUse, 5, 6, 1,
     "Takes from a bucket: key max_burst count period [quantity]; replies as throttlecrab does"},
    {"WEIR.PEEK", CommandId::kWeirPeek, Right::kUse, 2, kAnyNumber, 0,
     "What WEIR.CHECK would say: rule|* attribute value ... [@cost n]"},
    {"WEIR.RESERVE", CommandId::kWeirReserve, Right::kUse, 2, kAnyNumber, 0,
     "Takes an estimate, to be settled: rule|* attribute value ... [@cost n] [@ttl_ms n]"},
    {"WEIR.COMMIT", CommandId::kWeirCommit, Right::kUse, 2, 4, 0,
     "Settles a reservation at its real cost: id [@cost n]"},
    {"WEIR.CANCEL", CommandId::kWeirCancel, Right::kUse, 2, 2, 0, "Gives a reservation back: id"},
    {"WEIR.RELEASE", CommandId::kWeirRelease, Right::kUse, 2, 2, 0,
     "Gives a place under a concurrency limit back: id"},
    {"WEIR.REFUND", CommandId::kWeirRefund, Right::kManage, 2, kAnyNumber, 0,
     "Gives back what was taken: rule attribute value ... [@cost n]"},
    {"WEIR.PENALIZE", CommandId::kWeirPenalize, Right::kManage, 2, kAnyNumber, 0,
     "Takes more, whether there is enough or not: rule attribute value ... [@cost n]"},
    {"WEIR.RESET", CommandId::kWeirReset, Right::kManage, 2, kAnyNumber, 0,
     "Makes keys fresh and lifts their bans: rule attribute value ..."},
    {"PING", CommandId::kPing, Right::kUse, 1, 2, 0, "Answers: [text]"},
    {"ECHO", CommandId::kEcho, Right::kUse, 2, 2, 0, "Says the same: text"},
    {"HELLO", CommandId::kHello, Right::kNone, 1, kAnyNumber, 0,
     "Chooses the protocol: [2|3 [AUTH user token] [SETNAME name]]"},
    {"AUTH", CommandId::kAuth, Right::kNone, 2, 3, 0, "Presents a token: [user] token"},
    {"CLIENT", CommandId::kClient, Right::kUse, 2, kAnyNumber, 0,
     "About this connection: ID|INFO|LIST|GETNAME|SETNAME|SETINFO|NO-EVICT|NO-TOUCH"},
    {"COMMAND", CommandId::kCommand, Right::kUse, 1, kAnyNumber, 0,
     "About the commands: [COUNT|LIST|INFO|DOCS]"},
    {"INFO", CommandId::kInfo, Right::kUse, 1, kAnyNumber, 0, "About the service"},
    {"SELECT", CommandId::kSelect, Right::kUse, 2, 2, 0, "There is one database: 0"},
    {"QUIT", CommandId::kQuit, Right::kNone, 1, kAnyNumber, 0, "Ends the connection"},
    {"RESET", CommandId::kReset, Right::kNone, 1, 1, 0,
     "Makes the connection as it was at its beginning"},
}};

constexpr char ToUpper(char c) noexcept {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

}  // namespace

std::span<const CommandRow> Commands() noexcept { return kCommands; }

bool EqualsUpperCase(std::string_view text, std::string_view upper_case) noexcept {
  if (text.size() != upper_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // Mostly it is written in upper case already.
    if (text[i] != upper_case[i] && ToUpper(text[i]) != upper_case[i]) return false;
  }
  return true;
}

const CommandRow* FindCommand(std::string_view name) noexcept {
  for (const CommandRow& row : kCommands) {
    if (EqualsUpperCase(name, row.name)) return &row;
  }
  return nullptr;
}

}  // namespace weir::resp
