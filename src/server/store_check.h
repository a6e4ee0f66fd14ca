// Whether the servers of a shared store can be reached, without being counted there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/policy.h>

namespace weir {

// Connects to each, logs in and asks what it is, as a start does; takes as long as the policy lets
// a connection take. One line for each that was not ready by then; none if all were, if the store
// is in this process, or if no engine could be made of the policy. What else a person should know
// about the servers goes to `notice`.
std::vector<std::string> FindUnreachableServers(
    const Policy& policy, const std::function<void(std::string_view)>& notice);

}  // namespace weir
