// Errors as each protocol says them: one table for all.
#pragma once

#include <array>
#include <string_view>

#include <weir/result.h>

namespace weir {

struct ErrorRow {
  ErrorCode code;
  std::string_view name;  // In JSON.
  int http;
  int grpc;
  std::string_view resp;
};

inline constexpr std::array<ErrorRow, 9> kErrorTable = {{
    {ErrorCode::kInvalidArgument, "invalid_argument", 400, 3, "ERR"},
    {ErrorCode::kUnauthenticated, "unauthenticated", 401, 16, "NOAUTH"},
    {ErrorCode::kForbidden, "forbidden", 403, 7, "NOPERM"},
    {ErrorCode::kNotFound, "not_found", 404, 5, "ERR"},
    {ErrorCode::kConflict, "conflict", 409, 10, "ERR"},
    {ErrorCode::kTooLarge, "too_large", 413, 8, "ERR"},
    {ErrorCode::kOverloaded, "overloaded", 503, 14, "BUSY"},
    {ErrorCode::kDeadline, "deadline", 504, 4, "TIMEOUT"},
    {ErrorCode::kInternal, "internal", 500, 13, "ERR"},
}};

constexpr const ErrorRow& RowOf(ErrorCode code) noexcept {
  return kErrorTable[static_cast<std::size_t>(code)];
}

}  // namespace weir
