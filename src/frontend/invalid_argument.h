// The error of a request that cannot be understood or is not allowed as it is written.
#pragma once

#include <string>
#include <utility>

#include <weir/result.h>

namespace weir {

inline Error InvalidArgument(std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

}  // namespace weir
