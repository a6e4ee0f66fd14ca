// weir replay: what would this policy have done to yesterday's requests?
#pragma once

#include <optional>
#include <string>

#include "server/console.h"
#include "server/log_options.h"

namespace weir {

struct ReplayOptions {
  LogOptions logs{};
  std::string policy_file{};
  std::string against{};                        // Another policy.
  std::string decisions{};                      // One line of JSON for each request.
  std::optional<std::string> fail_if_denied{};  // 0.1%
  int top = 10;                                 // So many keys are named.
  bool spread = false;                          // Requests of one second come evenly over it.
  std::string html{};
  bool json = false;
};

int RunReplay(const ReplayOptions& options, const Console& console);

}  // namespace weir
