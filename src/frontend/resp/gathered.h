// Commands that were read and will be decided together: those of one kind that follow each other in
// a pipeline. Lives on the stack while input is taken up; nothing in it is made before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weir/engine.h>

#include "base/inline_vector.h"
#include "frontend/limit_cache.h"
#include "frontend/resp/check_words.h"

namespace weir::resp {

// How the decision on a limit that came with its request is written.
struct LimitShape {
  enum class Kind : std::uint8_t { kRedisCell, kThrottlecrab, kDecision };
  Kind kind = Kind::kDecision;
  std::int64_t quantity = 1;
  HttpForm http = HttpForm::kNone;  // Of kDecision.
};

// Either checks or limits, never both.
struct Gathered {
  static constexpr std::size_t kMost = 32;
  static_assert(kMost <= LimitCache::kGoodFor);

  Gathered() noexcept {}  // NOLINT: `= default` would have the room filled with zeros

  bool empty() const noexcept { return checks.empty() && limits.empty(); }
  bool IsFull() const noexcept {
    return checks.size() == kMost || limits.size() == kMost || !values.HasRoom();
  }
  void Clear() noexcept {
    while (!checks.empty()) checks.pop_back();
    while (!limits.empty()) limits.pop_back();
    while (!shapes.empty()) shapes.pop_back();
    values.Clear();
  }

  InlineVector<BatchRequest, kMost> checks;
  InlineVector<LimitRequest, kMost> limits;
  InlineVector<LimitShape, kMost> shapes;  // Of the limits.
  NamedValues values;                      // Of the checks.
};

}  // namespace weir::resp
