// The service as Redis clients see it.
#pragma once

#include <memory>

#include "frontend/protocol.h"

namespace weir {

std::unique_ptr<Protocol> MakeRespProtocol(Exchange& exchange);

}  // namespace weir
