// A decision on the wire: the same names in a RESP3 map and in a flat RESP2 array.
#pragma once

#include <weir/decision.h>
#include <weir/time.h>

#include "net/byte_buffer.h"
#include "net/resp/writer.h"

namespace weir::resp {

void WriteDecision(ByteBuffer& out, Version version, const Decision& decision, WallTime now);

}  // namespace weir::resp
