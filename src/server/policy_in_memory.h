// A policy for trying out: it counts in this process's memory, whatever store it
// names.
#pragma once

#include <string>

#include <weir/policy.h>

namespace weir {

// `file` is where the policy is from: files that it names are beside it.
PolicySpec SpecInMemory(const Policy& policy, const std::string& file);
Policy InMemory(const Policy& policy, const std::string& file);

}  // namespace weir
