// A decision on the wire: the same names in a RESP3 map and in a flat RESP2 array.
#pragma once

#include <cstdint>

#include <weir/decision.h>
#include <weir/time.h>

#include "frontend/decision_http.h"
#include "frontend/settings.h"
#include "net/byte_buffer.h"
#include "net/resp/writer.h"

namespace weir::resp {

// `more`: how many fields the caller writes behind those of the decision.
void WriteDecision(ByteBuffer& out, Version version, const Decision& decision, WallTime now,
                   std::int64_t more = 0);

// Whether a reply also says how HTTP tells the decision, and in which form a denial:
// `@http json` or `@http problem`.
enum class HttpForm : std::uint8_t { kNone, kJson, kProblem };

// A decision with three more fields, for those who answer an HTTP request with it: `status`,
// `headers` (whole lines, each with its line end) and `body` (empty if it is allowed).
void WriteHttpDecision(ByteBuffer& out, Version version, const DecisionReply& reply,
                       const Settings& settings, HttpForm form);

}  // namespace weir::resp
