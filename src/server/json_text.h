// JSON for people and scripts, from any bytes.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace weir {

// Indented. Bytes that are not UTF-8 are replaced.
std::string TextOf(const nlohmann::ordered_json& json);

}  // namespace weir
