// A socket on the loopback address, for tests that connect to one.
#pragma once

#include <utility>

#include "net/endpoint.h"
#include "net/listening_socket.h"

namespace weir {

// On a free port, unless `where` names one.
inline ListeningSocket OnLoopback(const char* where = "127.0.0.1:0") {
  return std::move(*ListeningSocket::Open(*Endpoint::Parse(where)));
}

}  // namespace weir
