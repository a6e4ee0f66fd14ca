// From the words of a command line to the command that they ask for.
#pragma once

#include <span>

#include "server/console.h"

namespace weir {

// `words` as main has them. Returns what the program should end with.
int RunCommandLine(std::span<const char* const> words, const Console& console);

}  // namespace weir
