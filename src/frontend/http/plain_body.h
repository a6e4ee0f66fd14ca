// Bodies the way clients write them: one object of texts and perhaps a cost, in ASCII and without
// escapes.
//
//   {"ip": "203.0.113.9", "user": "ann", "method": "POST", "path": "/orders", "cost": 2}
//
// Such a body is read in one pass, with less than half the instructions that a parser of all of
// JSON takes, and its texts are used where they stand. Everything else, mistakes included, is left
// to that parser.
#pragma once

#include <string_view>

#include "frontend/http/request_body.h"

namespace weir {

// Whether the body is such, and was read into `body`, which was cleared before; then a parser would
// have read the same. Else it must be cleared again.
bool ReadPlainBody(std::string_view json, const RequestBodyReader::Form& form,
                   RequestBody& body) noexcept;

}  // namespace weir
