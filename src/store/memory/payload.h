// How the states of windows and logs lie in a slot's payload, and the step on them.
//
//   fixed window     | count | end |                       the end: as it is if it is the
//   calendar's,
//                                                          else from fresh_at on
//   sliding window   | previous | current |                the current window's end: fresh_at - W
//   strict window    | end | count of the current sub-window | the one before | ... |
//   log, concurrency   two words, see EventPool
//
// So whoever moves the time of a window moves its fresh_at, and of a strict one also its end.
#pragma once

#include <cstdint>
#include <optional>

#include "algorithm/sliding_log.h"
#include "algorithm/step.h"
#include "store/memory/event_pool.h"

namespace weir {

struct PayloadStep {
  Decision decision;
  std::int64_t charged = 0;
  Ticks receipt{0};
  // For the slot's word, if the step was applied or denied; not if it was an overload.
  Ticks fresh_at{0};
  bool stored = false;  // The payload was written, so the slot's word must follow.
};

// The state of one key while its slot is locked. `fresh_at` is the one kept in the slot's word.
// A step that only decides may be followed by one that applies, and is then certain to succeed.
class PayloadState {
 public:
  PayloadState(const Limit& limit, EventPool& pool, std::uint64_t* payload,
               Ticks fresh_at) noexcept;

  PayloadStep Do(const StepRequest& request, const Instant& at, Effect effect) noexcept;

  // Goes on under `to` with what was counted so far; returns the new fresh_at. Not for leases,
  // which count the same under any number of places.
  Ticks CarryTo(const Limit& to) noexcept;

  // Adds what `late`, another state of the same key, has counted, once that was carried to this
  // limit; returns the new fresh_at. `late` is blank afterwards.
  Ticks Absorb(PayloadState& late, const Instant& at) noexcept;

 private:
  void MergeWindow(const PayloadState& late, const Instant& at) noexcept;
  void Blank() noexcept;
  template <typename State, typename StepFunction, typename FreshFunction, typename WriteFunction>
  PayloadStep DoWindow(const State& state, const StepRequest& request, Effect effect,
                       StepFunction step_on, FreshFunction fresh_at, WriteFunction write) noexcept;
  PayloadStep DoLog(ChunkedLog& log, const StepRequest& request, const Instant& at,
                    Effect effect) noexcept;

  const Limit& limit_;
  std::uint64_t* payload_;
  Ticks fresh_at_;
  std::optional<ChunkedLog> log_;
};

}  // namespace weir
