// What the HTTP connections of one thread share, because only one is served at a time: room for a
// head, for some requests read ahead, and for a reply. Kept from request to request, so that an
// ordinary one allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include <weir/engine.h>

#include "frontend/http/decision_reply.h"
#include "frontend/http/limits_page.h"
#include "frontend/http/request_body.h"
#include "net/byte_buffer.h"
#include "net/http/request_head.h"

namespace weir {

// A check that was read and not decided yet.
struct PendingCheck {
  RequestBodyReader reader{};
  RequestBody body{};
  ReplyForm form{};
  std::uint64_t number = 0;  // Of the request, on its connection.
  std::array<RuleDecision, ToldRules::kMost> each{};
};

class HttpWorkbench {
 public:
  // Requests that are decided together.
  static constexpr std::size_t kMostPending = 32;
  // Larger bodies are not read ahead, so that only one reader grows with them.
  static constexpr std::size_t kMostPendingBytes = 2048;

  // Of this thread, for replies that are made now.
  static HttpWorkbench& Mine(WallTime now) {
    thread_local HttpWorkbench bench;
    bench.writer.SetTime(now);
    return bench;
  }

  PendingCheck& pending(std::size_t number) {
    if (!pending_[number]) pending_[number] = std::make_unique<PendingCheck>();
    return *pending_[number];
  }

  HttpHead head{};
  IdentityStorage identity{};  // Of a forward-auth request,
  std::string path{};          // likewise.
  std::array<BatchRequest, kMostPending> batch{};
  RequestBodyReader reader{};
  RequestBody body{};
  ReplyWriter writer{};
  ByteBuffer text{};  // A reply that comes later.
  ByteBuffer list{};  // The decisions of a batch.
  LimitsPage limits{};

 private:
  std::array<std::unique_ptr<PendingCheck>, kMostPending> pending_{};
};

}  // namespace weir
