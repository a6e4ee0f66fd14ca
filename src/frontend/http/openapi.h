// The description of the interface, docs/openapi.json, which the program carries within itself.
#pragma once

#include <string_view>

namespace weir {

std::string_view OpenApiJson() noexcept;

}  // namespace weir
