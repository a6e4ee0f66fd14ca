// Where a command reads and writes, so that tests need no process.
#pragma once

#include <cstddef>
#include <istream>
#include <ostream>
#include <string>

#include <weir/result.h>

namespace weir {

struct Console {
  std::istream& in;
  std::ostream& out;  // Results.
  std::ostream& err;  // Messages.
  // Somebody watches: then long work says how far it is, and text has colors.
  bool out_is_terminal = false;
  bool err_is_terminal = false;
};

// What a command ends with.
inline constexpr int kExitOk = 0;
inline constexpr int kExitProblems = 1;  // It did its work and found problems, or could not.
inline constexpr int kExitUsage = 2;     // It was called wrongly.

// The name of standard input on a command line, and in messages.
inline constexpr const char* kStandardInput = "-";
inline constexpr const char* kStandardInputName = "stdin";

// All of it. More than `cap` bytes is an error.
Result<std::string> ReadAll(std::istream& in, std::size_t cap);

// "1 error", "2 errors".
std::string CountOf(std::size_t count, const std::string& thing);

}  // namespace weir
