// Forward-auth: a proxy asks whether the request of its client may pass, and tells which that is by
// headers, or by the path that it puts behind ours:
//
//   method   X-Forwarded-Method, else X-Original-Method, else that of the request itself
//   URI      X-Forwarded-Uri, else X-Original-URI, else X-Original-URL, else what stands behind
//            /v1/auth
//   host     X-Forwarded-Host, else that of a URI with a host, else Host
//
// The headers count only if the peer is trusted. A proxy that adds its own but passes on its
// client's would let the client choose which path it is limited by; so headers that contradict each
// other are an error, whichever of them is whose.
#pragma once

#include <string>
#include <string_view>

#include <weir/identity.h>
#include <weir/result.h>

#include "net/http/request_head.h"

namespace weir {

// Whether the query of a forward-auth URL wants denials as 403: deny_status=403. Anything but 403
// and 429 says nothing.
bool WantsDenialsBy403(std::string_view query) noexcept;

// One request of a proxy.
struct AuthRequest {
  const HttpHead& head;
  std::string_view below{};  // What stands behind /v1/auth, with the query.
  std::string_view peer{};
  bool trusted = false;
};

// The request that the proxy asks about. Refers to `request`, and perhaps to `buffer`, which keeps
// its memory. An error if the headers contradict each other, or name no method.
Result<Incoming> OriginalRequest(const AuthRequest& request, std::string& buffer);

}  // namespace weir
