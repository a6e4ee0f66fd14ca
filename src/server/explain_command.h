// weir explain: why would this request be allowed or denied?
#pragma once

#include <string>

#include "server/console.h"

namespace weir {

struct ExplainOptions {
  std::string policy_file;
  std::string request;  // JSON; or @FILE; or - for standard input.
  bool json = false;
};

int RunExplain(const ExplainOptions& options, const Console& console);

}  // namespace weir
