#include "oracle.h"

#include <algorithm>
#include <map>

#include "counting_oracle.h"

namespace weir::conformance {
namespace {

// Both buckets, as the table of the contract has them, in ticks.
class BucketOracle final : public Oracle {
 public:
  BucketOracle(const LimitSpec& spec, int resolution)
      : spec_(spec),
        resolution_(resolution),
        capacity_(spec.burst == 0 ? spec.count : spec.burst),
        interval_(CeilDiv(Wide(spec.period.count()) * resolution, spec.count)),
        tolerance_(capacity_ * interval_),
        room_(spec.queue ? tolerance_ + interval_ : tolerance_),
        max_wait_(Wide(spec.max_wait.count()) * resolution) {}

  Decision Do(const TraceAction& action, Now now) override {
    const Wide at = Ticks(now);
    const Wide furthest = 2 * tolerance_ + max_wait_;
    const Wide stored = full_at_;
    const Wide ahead = stored - at;
    met_clock_damage_ = ahead > furthest;
    const Wide level = std::clamp<Wide>(ahead, 0, furthest);
    // Nobody may be shut out for longer than a full drain, so the drain begins now, whatever is
    // asked and whatever the answer.
    if (met_clock_damage_) full_at_ = at + furthest;

    Decision decision;
    decision.limit = static_cast<std::int64_t>(capacity_);
    decision.cost = action.cost;
    decision.allowed = true;
    decision.reason = Reason::kOk;
    switch (action.verb) {
      case TraceVerb::kCheck:
      case TraceVerb::kPeek:
        Judge(action, level, at, decision);
        break;
      case TraceVerb::kRefund:
        Keep(at, level, std::max<Wide>(0, level - action.cost * interval_));
        break;
      case TraceVerb::kPenalize:
        Keep(at, level, Indebted(level, action.cost * interval_, 2 * tolerance_));
        break;
      case TraceVerb::kReset:
        full_at_ = kLongAgo;
        break;
      case TraceVerb::kSettle:
        Settle(charges_.at(action.of), action.cost, level, at);
        break;
      case TraceVerb::kUnbook: {
        const Charge& charge = charges_.at(action.of);
        // The last in line is the one whose charge ends where the line ends.
        const Wide back = charge.full_at == stored ? charge.units * interval_ : Wide(0);
        Keep(at, level, std::max<Wide>(0, level - back));
        break;
      }
    }
    const Wide after = std::clamp<Wide>(full_at_ - at, 0, furthest);
    decision.remaining =
        static_cast<std::int64_t>(std::clamp<Wide>((room_ - after) / interval_, 0, capacity_));
    decision.reset_after = UpToNanoseconds(after);
    return decision;
  }

  bool FindsClockDamage(Now now) override {
    return full_at_ - Ticks(now) > 2 * tolerance_ + max_wait_;
  }

  Now NextBoundary(Now now) const override {
    const Wide ahead = std::max<Wide>(0, full_at_ - Ticks(now));
    const Duration step = UpToNanoseconds(ahead % interval_);
    return {now.steady + step, now.wall + step};
  }

 private:
  struct Charge {
    Wide full_at;
    Wide units;
  };

  static constexpr Wide kLongAgo = -(Wide(1) << 100);

  Wide Ticks(Now now) const { return Wide(now.steady.time_since_epoch().count()) * resolution_; }
  Duration UpToNanoseconds(Wide ticks) const {
    return Duration(static_cast<std::int64_t>(CeilDiv(ticks, resolution_)));
  }

  // Debt ends at `most`, and what is above already stays.
  static Wide Indebted(Wide level, Wide more, Wide most) {
    return std::max(level, std::min(most, level + more));
  }

  // What changes nothing leaves no trace, and what makes the key fresh makes it as good as new.
  void Keep(Wide at, Wide before, Wide after) {
    if (after != before) full_at_ = after == 0 ? kLongAgo : at + after;
  }

  void Judge(const TraceAction& action, Wide level, Wide at, Decision& decision) {
    const Wide wait = Wide(action.wait.count()) * resolution_;
    const Wide asked = action.cost == 0 ? 1 : action.cost;
    const Wide wanted = spec_.overdraft ? 1 : asked;
    const bool takes = action.verb == TraceVerb::kCheck && action.cost != 0;
    // How much too early the request is.
    Wide early = level + wanted * interval_ - room_;
    Wide delay = 0;
    if (spec_.queue) {
      delay = level;
      if (wait > 0) early = std::max(early, delay - wait);
    } else {
      delay = std::max<Wide>(0, early);
      early -= wait;
    }

    if (wanted * interval_ > room_) {
      decision.allowed = false;
      decision.reason = Reason::kNeverFits;
      decision.retry_after = kNever;
      return;
    }
    if (early > 0) {
      decision.allowed = false;
      decision.reason = Reason::kLimited;
      decision.retry_after = UpToNanoseconds(early);
      return;
    }
    decision.delay = UpToNanoseconds(delay);
    if (!takes) return;
    const Wide booked = spec_.queue ? Wide(0) : wait;
    const Wide after = spec_.overdraft ? Indebted(level, asked * interval_, 2 * tolerance_ + booked)
                                       : level + asked * interval_;
    full_at_ = at + after;
    charges_[action.number] = {full_at_, (after - level) / interval_};
  }

  void Settle(const Charge& charge, Wide cost, Wide level, Wide at) {
    if (cost > charge.units) {
      Keep(at, level, Indebted(level, (cost - charge.units) * interval_, 2 * tolerance_));
      return;
    }
    // A charge has come back by itself, at the latest, by the time the bucket would have been full
    // had nothing been taken after it: only what has not may still be given back.
    const Wide counts = std::max<Wide>(0, charge.full_at - at);
    const Wide back = std::min((charge.units - cost) * interval_, counts);
    Keep(at, level, std::max<Wide>(0, level - back));
  }

  LimitSpec spec_;
  Wide resolution_;
  Wide capacity_;
  Wide interval_;
  Wide tolerance_;
  Wide room_;
  Wide max_wait_;
  Wide full_at_ = kLongAgo;
  std::map<int, Charge> charges_;
};

}  // namespace

std::unique_ptr<Oracle> MakeOracle(const LimitSpec& spec, Now start, int ticks_per_nanosecond) {
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return std::make_unique<BucketOracle>(spec, ticks_per_nanosecond);
    default:
      return MakeCountingOracle(spec, start, ticks_per_nanosecond);
  }
}

}  // namespace weir::conformance
