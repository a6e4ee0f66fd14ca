#include "store/guard/share.h"

#include <algorithm>

#include "limit/limit_check.h"

namespace weir {
namespace {

// Products of a period and a number of processes.
__extension__ using Wide = __int128;

// Rate and burst of one of `nodes`, within what a Limit can be: where the period would be too long,
// less in a shorter one.
void CutBucket(LimitSpec& spec, int nodes) noexcept {
  const std::int64_t burst = std::max<std::int64_t>(1, BurstOf(spec) / nodes);
  const Wide period = Wide{spec.period.count()} * nodes;
  const Wide most = kMaxPeriod.count();
  if (period > most) {
    const Wide times = (period + most - 1) / most;
    spec.count = std::max<std::int64_t>(1, static_cast<std::int64_t>(spec.count / times));
    spec.period = kMaxPeriod;
  } else {
    spec.period = Duration(static_cast<Duration::rep>(period));
  }
  const Wide holds = Wide{kMaxBurstTime.count()} * spec.count / spec.period.count();
  spec.burst = static_cast<std::int64_t>(std::clamp<Wide>(burst, 1, std::max<Wide>(1, holds)));
}

}  // namespace

Limit ShareOf(const Limit& limit, int nodes) {
  if (limit.kind() != LimitKind::kCounted) return limit;
  // A part of another size may have left more than this one would: that is no damage.
  if (nodes <= 1) return limit.SharingKeysWithAny();
  LimitSpec spec = limit.spec();
  if (IsBucket(spec.algorithm)) {
    CutBucket(spec, nodes);
  } else {
    spec.count = std::max<std::int64_t>(1, spec.count / nodes);
  }
  Result<Limit> share = Limit::Make(spec);
  // Cannot be, because the limit itself was right; and if it were, too little is better.
  if (!share) return *Limit::Make({.kind = LimitKind::kDeny});
  return share->InPlaceOf(limit).SharingKeysWithAny();
}

void Shares::Tidy() noexcept {
  outdated_.clear();
  if (known_.size() > kMost) known_.clear();
}

const Limit& Shares::Of(const Limit& limit, int nodes) noexcept {
  const auto [place, is_new] = known_.try_emplace(&limit);
  Known& known = place->second;
  const bool same = !is_new && known.nodes == nodes && known.state_salt == limit.state_salt() &&
                    known.predecessor_until == limit.predecessor_until() &&
                    known.spec == limit.spec();
  if (same) [[likely]]
    return *known.share;
  if (known.share != nullptr) outdated_.push_back(std::move(known.share));
  known = {.spec = limit.spec(),
           .state_salt = limit.state_salt(),
           .predecessor_until = limit.predecessor_until(),
           .nodes = nodes,
           .share = std::make_unique<const Limit>(ShareOf(limit, nodes))};
  return *known.share;
}

}  // namespace weir
