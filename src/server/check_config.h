// weir check-config: is this policy right?
#pragma once

#include <string>
#include <vector>

#include <weir/policy.h>

#include "server/console.h"

namespace weir {

struct CheckConfigOptions {
  std::string file;
  bool json = false;
  bool strict = false;  // Advice counts as an error.
};

int RunCheckConfig(const CheckConfigOptions& options, const Console& console);

// The policy of a file, or of standard input.
PolicyReport LoadPolicy(const std::string& file, std::istream& in);
// One line each.
void PrintProblems(const std::vector<Problem>& problems, std::ostream& out);

}  // namespace weir
