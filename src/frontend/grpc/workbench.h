// What the gRPC connections of one thread share, because only one is served at a time. Kept from
// call to call, so that an ordinary one allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <weir/engine.h>

#include "frontend/grpc/grpc_call.h"
#include "frontend/grpc/limiter_message.h"
#include "frontend/grpc/rls_message.h"
#include "frontend/grpc/rls_parts.h"

namespace weir {

// A call that was read and not decided yet.
struct PendingCall {
  // How many rules are told of in the headers.
  static constexpr std::size_t kMostRules = 32;

  GrpcCall* call = nullptr;
  RlsParts rls{};            // Of Envoy's,
  LimiterMessage message{};  // or our own.
  std::array<RuleDecision, kMostRules> each{};
};

class GrpcWorkbench {
 public:
  // Calls that are decided together.
  static constexpr std::size_t kMostPending = 32;

  static GrpcWorkbench& Mine() {
    thread_local GrpcWorkbench bench;
    return bench;
  }

  PendingCall& pending(std::size_t number) {
    if (!pending_[number]) pending_[number] = std::make_unique<PendingCall>();
    return *pending_[number];
  }

  std::unique_ptr<GrpcCall> TakeCall() {
    if (free_calls_.empty()) return std::make_unique<GrpcCall>();
    std::unique_ptr<GrpcCall> call = std::move(free_calls_.back());
    free_calls_.pop_back();
    return call;
  }
  void ReturnCall(std::unique_ptr<GrpcCall> call) {
    if (free_calls_.size() >= kMostFree) return;
    call->GiveBack();
    free_calls_.push_back(std::move(call));
  }

  std::array<BatchRequest, kMostPending> batch{};
  PendingCall other{};  // One that is decided by itself.
  std::vector<RuleDecision> statuses{};
  std::vector<std::string_view> batch_texts{};
  RlsWriter rls_writer{};

 private:
  static constexpr std::size_t kMostFree = 512;

  std::array<std::unique_ptr<PendingCall>, kMostPending> pending_{};
  std::vector<std::unique_ptr<GrpcCall>> free_calls_{};
};

}  // namespace weir
