// A decision on the wire: the same names in a RESP3 map and in a flat RESP2 array.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <weir/decision.h>
#include <weir/time.h>

#include "net/byte_buffer.h"
#include "net/resp/writer.h"

namespace weir::resp {

void WriteDecision(ByteBuffer& out, Version version, const Decision& decision, WallTime now);

// A reservation is written, and read, as 16 hex digits.
std::optional<ReservationId> ParseReservation(std::string_view text) noexcept;

}  // namespace weir::resp
