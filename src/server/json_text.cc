#include "server/json_text.h"

#include <nlohmann/json.hpp>

namespace weir {

std::string TextOf(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace weir
