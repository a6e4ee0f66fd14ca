// Runs commands through the command line, without a process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "server/command_line.h"

namespace weir {

struct Ran {
  int code;
  std::string out;
  std::string err;
};

// `words` begin with the program's name.
inline Ran RunWith(const std::vector<const char*>& words, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out, err;
  const int code = RunCommandLine(words, {.in = in, .out = out, .err = err});
  return {.code = code, .out = out.str(), .err = err.str()};
}

}  // namespace weir
