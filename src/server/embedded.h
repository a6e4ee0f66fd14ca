// What is written into the program when it is built.
#pragma once

#include <string_view>

namespace weir {

// 1.2.3
std::string_view ProgramVersion();

// The JSON Schema of policy files, as docs/ has it.
std::string_view PolicySchema();

}  // namespace weir
