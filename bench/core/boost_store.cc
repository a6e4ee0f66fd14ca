#include "boost_store.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>

namespace weir::bench {

template <typename By>
BoostStore<By>::BoostStore(const Limit& limit, std::size_t expected_keys)
    : limit_(limit),
      clock_(SystemClock::Shared()),
      hasher_(HashKind::kXxh3),
      timeline_(clock_.Read()) {
  // Shards differ in size by chance: six standard deviations above the mean fit.
  const auto mean = static_cast<double>(expected_keys) / kShards;
  const auto room = static_cast<std::size_t>(mean + 6 * std::sqrt(mean));
  for (Shard& shard : shards_) {
    shard.map = By::MakeMap(hasher_);
    if (expected_keys != 0) shard.map.reserve(room);
  }
}

template <typename By>
BucketVerdict BoostStore<By>::Judge(const HashedKey& key, const StepRequest& request,
                                    Ticks now) noexcept {
  Shard& shard = ShardOf(key.hash);
  const std::scoped_lock lock(shard.lock);
  const auto found = By::Find(shard.map, key);
  const bool known = found != shard.map.end();
  const BucketState state = known ? found->second : BucketState{};
  const BucketVerdict verdict = JudgeTokenBucket(limit_, state, request, now);
  if (verdict.reason == Reason::kOk && Takes(request)) {
    const BucketState next = StateAfter(verdict, state, request, now);
    if (known) {
      found->second = next;
    } else {
      By::Insert(shard.map, key, next);
    }
  }
  return verdict;
}

template <typename By>
Decision BoostStore<By>::Decide(const HashedKey& key, const StepRequest& request,
                                Ticks now) noexcept {
  const BucketVerdict verdict = Judge(key, request, now);
  return DescribeBucket(limit_, name_, request, verdict, limit_.burst_tolerance());
}

template <typename By>
Decision BoostStore<By>::Check(std::string_view key) noexcept {
  return Check(key, clock_.Read());
}

template <typename By>
Decision BoostStore<By>::Check(std::string_view key, Now now) noexcept {
  return Decide({.text = key, .hash = hasher_(key)}, {}, timeline_.At(now).now);
}

template <typename By>
Decision BoostStore<By>::Peek(std::string_view key) noexcept {
  return Decide({.text = key, .hash = hasher_(key)}, {.verb = Verb::kPeek},
                timeline_.At(clock_.Read()).now);
}

template <typename By>
Result<void> BoostStore<By>::CheckBatch(std::span<const BatchItem> items,
                                        std::span<Decision> decisions) noexcept {
  return CheckBatch(items, decisions, clock_.Read());
}

template <typename By>
Result<void> BoostStore<By>::CheckBatch(std::span<const BatchItem> items,
                                        std::span<Decision> decisions, Now now) noexcept {
  constexpr std::size_t kAtOnce = 32;
  std::array<std::uint64_t, kAtOnce> hashes;
  const Ticks ticks = timeline_.At(now).now;
  for (std::size_t done = 0; done < items.size(); done += kAtOnce) {
    const auto batch = items.subspan(done, std::min(kAtOnce, items.size() - done));
    for (std::size_t i = 0; i < batch.size(); ++i) hashes[i] = hasher_(batch[i].key);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const HashedKey key{.text = batch[i].key, .hash = hashes[i]};
      // Made in its place: an assignment would copy it.
      ::new (&decisions[done + i]) Decision(Decide(key, {.cost = batch[i].cost}, ticks));
    }
  }
  return {};
}

template <typename By>
std::size_t BoostStore<By>::entries() noexcept {
  std::size_t sum = 0;
  for (Shard& shard : shards_) {
    const std::scoped_lock lock(shard.lock);
    sum += shard.map.size();
  }
  return sum;
}

template class BoostStore<ByFingerprint>;
template class BoostStore<ByString>;

}  // namespace weir::bench
