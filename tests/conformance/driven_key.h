// One key under one limit, driven by hand through the pure steps of its algorithm: the state in a
// variable, a clock that is moved by the test, and nothing around them.
#pragma once

#include <utility>

#include <weir/limit.h>

#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/leaky_bucket.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"
#include "algorithm/strict_window.h"
#include "algorithm/token_bucket.h"
#include "deque_log.h"

namespace weir {

class DrivenKey {
 public:
  // What a charge left behind, to be settled or unbooked later.
  struct Receipt {
    std::int64_t charged = 0;
    Ticks at{0};
  };

  // 2025-01-01 at 00:00:00 UTC: the start of a window of any usual length.
  static constexpr WallTime kStart{std::chrono::sys_days(std::chrono::year(2025) / 1 / 1)};

  explicit DrivenKey(Limit limit, Now start = {SteadyTime(std::chrono::hours(1)), kStart})
      : limit_(std::move(limit)), timeline_(start), now_(start) {}

  Decision Check(std::int64_t cost = 1, Duration wait = Duration(0)) {
    return Do({.verb = Verb::kCheck, .cost = cost, .wait = ToTicks(wait)});
  }
  Decision Peek(std::int64_t cost = 1, Duration wait = Duration(0)) {
    return Do({.verb = Verb::kPeek, .cost = cost, .wait = ToTicks(wait)});
  }
  Decision Refund(std::int64_t cost) { return Do({.verb = Verb::kRefund, .cost = cost}); }
  Decision Penalize(std::int64_t cost) { return Do({.verb = Verb::kPenalize, .cost = cost}); }
  Decision Reset() { return Do({.verb = Verb::kReset}); }
  Decision Settle(Receipt receipt, std::int64_t cost) {
    return Do({.verb = Verb::kSettle,
               .cost = cost,
               .wait = {},
               .reserved = receipt.charged,
               .receipt = receipt.at});
  }
  Decision Cancel(Receipt receipt) { return Settle(receipt, 0); }
  Decision Unbook(Receipt receipt) {
    return Do({.verb = Verb::kUnbook,
               .cost = 0,
               .wait = {},
               .reserved = receipt.charged,
               .receipt = receipt.at});
  }

  Decision Do(const StepRequest& request) {
    const Instant at = timeline_.At(now_);
    switch (limit_.algorithm()) {
      case Algorithm::kTokenBucket:
        return Keep(bucket, StepTokenBucket(limit_, bucket, request, at.now));
      case Algorithm::kLeakyBucket:
        if (!limit_.spec().queue) {
          return Keep(bucket, StepTokenBucket(limit_, bucket, request, at.now));
        }
        return Keep(bucket, StepLeakyQueue(limit_, bucket, request, at.now));
      case Algorithm::kFixedWindow:
        return Keep(fixed, StepFixedWindow(limit_, fixed, request, at));
      case Algorithm::kSlidingWindow:
        if (!limit_.spec().strict) {
          return Keep(sliding, StepSlidingWindow(limit_, sliding, request, at));
        }
        return Keep(strict, StepStrictWindow(limit_, strict, request, at));
      default:
        return KeepLog(LogStepNow(request, Effect::kApply));
    }
  }

  // Logs only.
  LogStep LogStepNow(const StepRequest& request, Effect effect) {
    const auto step =
        limit_.algorithm() == Algorithm::kConcurrency ? StepConcurrency : StepSlidingLog;
    return step(limit_, log, request, timeline_.At(now_), effect);
  }

  // Both clocks, forward or back.
  void Advance(Duration step) {
    now_.steady += step;
    now_.wall += step;
  }
  void SetNow(Now now) { now_ = now; }
  // Only the wall clock.
  void SetWall(WallTime wall) { now_.wall = wall; }

  Now now() const { return now_; }
  Instant instant() const { return timeline_.At(now_); }
  const Limit& limit() const { return limit_; }
  // Of the step before.
  Receipt receipt() const { return receipt_; }

  // Another limit takes over, with what was counted so far.
  void ChangeTo(const Limit& limit) {
    bucket = CarryBucket(limit_, limit, bucket, instant().now);
    fixed = CarryFixedWindow(limit_, limit, fixed);
    sliding = CarrySlidingWindow(limit_, limit, sliding);
    if (limit.spec().strict) strict = CarryStrictWindow(limit_, limit, strict);
    CarrySlidingLog(limit_, limit, log);
    limit_ = limit;
  }

  // Of these the limit's algorithm uses one.
  BucketState bucket;
  FixedWindowState fixed;
  SlidingWindowState sliding;
  StrictWindowState strict;
  DequeLog log;

 private:
  template <typename State>
  Decision Keep(State& state, const Step<State>& step) {
    state = step.next;
    receipt_ = {step.charged, step.receipt};
    return step.decision;
  }
  Decision KeepLog(const LogStep& step) {
    receipt_ = {step.charged, step.receipt};
    return step.decision;
  }

  Limit limit_;
  Timeline timeline_;
  Now now_;
  Receipt receipt_;
};

}  // namespace weir
