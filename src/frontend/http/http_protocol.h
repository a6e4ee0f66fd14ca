// HTTP/1.1 in front of the engine: the endpoints under /v1, and those for operation.
#pragma once

#include <memory>

#include "frontend/protocol.h"

namespace weir {

std::unique_ptr<Protocol> MakeHttpProtocol(Exchange& exchange);

}  // namespace weir
