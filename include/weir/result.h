// Errors as values. A denial is not an error: it is a Decision. An Error says that the question
// itself could not be taken up, and its code says what the caller should do about it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace weir {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // Mend the call: the message names the field and what is allowed.
  kUnauthenticated,  // Say who you are, then call again.
  kForbidden,        // Ask for the right; the same call will fail again without it.
  kNotFound,         // The thing named does not exist (any more).
  kConflict,         // Somebody changed it meanwhile: read again, then decide.
  kTooLarge,         // Send less.
  kOverloaded,       // Nothing was decided: try again later, with back-off.
  kDeadline,         // The time allowed ran out; whether it took effect is unknown.
  kInternal,         // A bug or a broken environment: report it.
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;

}  // namespace weir
