// A request of Envoy's as the engine takes it: each descriptor is a part, and those that give back
// what was taken before are apart from those that ask.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weir/engine.h>
#include <weir/result.h>

#include "frontend/grpc/rls_message.h"
#include "frontend/limit_cache.h"

namespace weir {

// Used again it keeps its memory.
class RlsParts {
 public:
  // None if the message was read; then this refers to it, and to the limits.
  std::optional<Error> Read(std::string_view message, LimitCache& limits);

  // One descriptor, that asks and has no limit of its own: as most are.
  bool is_plain() const noexcept {
    return request_.descriptors.size() == 1 && checks_.size() == 1 && checks_[0].limit == nullptr;
  }
  const RequestPart& only() const noexcept { return checks_[0]; }

  std::span<const RequestPart> checks() const noexcept { return checks_; }
  std::span<const RequestPart> refunds() const noexcept { return refunds_; }

  // What was said of those, in the order of the descriptors.
  void Merge(std::span<const RuleDecision> of_checks, std::span<const RuleDecision> of_refunds,
             std::vector<RuleDecision>& statuses) const;

 private:
  std::optional<Error> AddPart(std::size_t number, LimitCache& limits);

  RlsRequest request_{};
  std::vector<RequestPart> checks_{};
  std::vector<RequestPart> refunds_{};
  // Of the descriptors with limits of their own. Each stays where it is.
  std::array<std::string, Engine::kMostParts> keys_{};
};

}  // namespace weir
