// The store that a policy names, made from its settings.
#include "engine/shared_place.h"

namespace weir {

Result<std::unique_ptr<SharedPlace>> MakeRedisPlace(const Policy& /*policy*/,
                                                    const EngineOptions& /*options*/) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument,
                               "only memory can be had in this version; write store: memory"});
}

}  // namespace weir
