// The rules that a request names itself.
#pragma once

#include <optional>

#include <weir/engine.h>
#include <weir/request.h>
#include <weir/result.h>

namespace weir {

// None if the policy has all of them.
std::optional<Error> FindUnknownRule(const Engine& engine, const Request& request);

}  // namespace weir
