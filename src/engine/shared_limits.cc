#include "engine/shared_limits.h"

#include <utility>

#include "base/mix.h"

namespace weir {

Result<std::shared_ptr<const Limit>> SharedLimits::Of(const Limit& limit) {
  const LimitSpec& spec = limit.spec();
  std::uint64_t hash = Mix(static_cast<std::uint64_t>(spec.count));
  hash = Mix(hash ^ static_cast<std::uint64_t>(spec.period.count()));
  hash = Mix(hash ^ static_cast<std::uint64_t>(spec.burst) ^
             (std::uint64_t{std::to_underlying(spec.algorithm)} << 56));
  Place& place = places_[hash % kPlaces];
  if (place.limit != nullptr && place.spec == spec) return place.limit;
  Result<Limit> shared = limit.ForSharedStore();
  if (!shared) return std::unexpected(std::move(shared.error()));
  place.spec = spec;
  place.limit = std::make_shared<const Limit>(shared->SharingKeysWithAny());
  return place.limit;
}

}  // namespace weir
