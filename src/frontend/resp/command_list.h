// COMMAND: what the commands are, for clients that want to know before they call them.
#pragma once

#include <span>
#include <string_view>

#include "frontend/resp/reply.h"

namespace weir::resp {

// COMMAND, COMMAND COUNT, COMMAND LIST, COMMAND INFO [name ...], COMMAND DOCS [name ...].
void ListCommands(std::span<const std::string_view> words, Reply& reply);

// Redis' text on a command that does not exist, with the beginning of what it was called with.
std::string UnknownCommandText(std::span<const std::string_view> words);
// And on one that was called with too many words, or too few.
std::string WrongNumberText(std::string_view upper_case_name);

}  // namespace weir::resp
