// weir fmt: policy files in one form, comments kept.
#pragma once

#include <string>
#include <vector>

#include "server/console.h"

namespace weir {

struct FormatOptions {
  std::vector<std::string> files;
  bool check = false;      // Changes nothing; ends with 1 if something would change.
  bool to_stdout = false;  // Prints the text instead of changing the file.
};

int RunFormat(const FormatOptions& options, const Console& console);

}  // namespace weir
