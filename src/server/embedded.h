// What is written into the program when it is built.
#pragma once

#include <string_view>

namespace weir {

// 1.2.3
std::string_view ProgramVersion();

// 0123456789ab, or 0123456789ab with changes; empty if it was not built from a repository.
std::string_view ProgramCommit();

// The JSON Schema of policy files, as docs/ has it.
std::string_view PolicySchema();

}  // namespace weir
