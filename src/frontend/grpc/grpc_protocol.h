// gRPC: calls come in as HTTP/2 requests, those that came together are decided as one batch, and
// each is answered as soon as its answer is there.
#pragma once

#include <memory>

#include "frontend/protocol.h"

namespace weir {

std::unique_ptr<Protocol> MakeGrpcProtocol(Exchange& exchange);

}  // namespace weir
