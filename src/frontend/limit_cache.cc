#include "frontend/limit_cache.h"

#include <chrono>
#include <utility>

#include "base/hash.h"
#include "base/mix.h"

namespace weir {
namespace {

// A longer text, which only blanks can make of it, is read each time.
constexpr std::size_t kMostTextBytes = 128;

std::string_view Rest(const std::string& text, std::size_t from) noexcept {
  return std::string_view(text).substr(from);
}

}  // namespace

// Limits that were replaced, so that those found just before can still be used.
class LimitCache::Replaced {
 public:
  void Keep(std::unique_ptr<const Limit> limit) noexcept {
    limits_[next_++ % kGoodFor] = std::move(limit);
  }

 private:
  std::array<std::unique_ptr<const Limit>, kGoodFor> limits_;
  std::size_t next_ = 0;
};

struct LimitCache::Texts {
  struct Place {
    std::string text{};  // And the algorithm behind it.
    std::size_t text_size = 0;
    std::unique_ptr<const Limit> limit{};

    bool Holds(std::string_view wanted, std::string_view algorithm) const noexcept {
      return limit != nullptr && text_size == wanted.size() && text.starts_with(wanted) &&
             Rest(text, text_size) == algorithm;
    }
  };

  Place& PlaceOf(std::string_view text, std::string_view algorithm) noexcept {
    return places[(hash(text) ^ Mix(hash(algorithm))) % kPlaces];
  }

  KeyHasher hash{HashKind::kXxh3};  // Nobody can pick texts that share a place.
  std::array<Place, kPlaces> places{};
};

struct LimitCache::Buckets {
  struct Place {
    Bucket bucket{};
    std::unique_ptr<const Limit> limit{};
  };

  Place& PlaceOf(const Bucket& bucket) noexcept {
    const auto bits = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
    const std::uint64_t rate = Mix(bits(bucket.count) ^ (bits(bucket.seconds) << 32));
    return places[Mix(rate ^ bits(bucket.capacity)) % kPlaces];
  }

  std::array<Place, kPlaces> places{};
};

LimitCache::LimitCache(bool shared)
    : shared_(shared),
      texts_(std::make_unique<Texts>()),
      buckets_(std::make_unique<Buckets>()),
      replaced_(std::make_unique<Replaced>()) {}
LimitCache::~LimitCache() = default;

void LimitCache::SetShared(bool shared) {
  if (shared == shared_) return;
  shared_ = shared;
  texts_ = std::make_unique<Texts>();
  buckets_ = std::make_unique<Buckets>();
}

Result<std::unique_ptr<const Limit>> LimitCache::Prepare(Result<Limit> limit) const {
  if (limit && shared_) limit = limit->ForSharedStore();
  if (!limit) return std::unexpected(std::move(limit.error()));
  return std::make_unique<const Limit>(limit->SharingKeysWithAny());
}

Result<const Limit*> LimitCache::Find(std::string_view text, std::string_view algorithm) {
  Texts::Place& place = texts_->PlaceOf(text, algorithm);
  if (place.Holds(text, algorithm)) return place.limit.get();
  LimitSpec defaults;
  if (!algorithm.empty()) {
    const Result<Algorithm> named = ParseAlgorithm(algorithm);
    if (!named) return std::unexpected(named.error());
    defaults.algorithm = *named;
  }
  Result<std::unique_ptr<const Limit>> made = Prepare(Limit::Parse(text, defaults));
  if (!made) return std::unexpected(std::move(made.error()));
  const Limit* const found = made->get();
  if (text.size() + algorithm.size() > kMostTextBytes) {
    replaced_->Keep(std::move(*made));
    return found;
  }
  replaced_->Keep(std::exchange(place.limit, std::move(*made)));
  place.text.assign(text).append(algorithm);
  place.text_size = text.size();
  return found;
}

Result<const Limit*> LimitCache::Find(const Bucket& bucket) {
  Buckets::Place& place = buckets_->PlaceOf(bucket);
  if (place.bucket == bucket && place.limit != nullptr) [[likely]]
    return place.limit.get();
  const auto most_seconds = std::chrono::duration_cast<std::chrono::seconds>(kMaxPeriod).count();
  if (bucket.seconds < 1 || bucket.seconds > most_seconds) {
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument, "period: " + std::to_string(bucket.seconds) +
                                               " is not allowed; write 1 to " +
                                               std::to_string(most_seconds) + " seconds"});
  }
  if (bucket.capacity < 1 || bucket.capacity > kMaxCount) {  // 0 would mean `count` below.
    return std::unexpected(Error{ErrorCode::kInvalidArgument,
                                 "burst: " + std::to_string(bucket.capacity) +
                                     " is not allowed; write 1 to " + std::to_string(kMaxCount)});
  }
  Result<std::unique_ptr<const Limit>> made =
      Prepare(Limit::Make({.count = bucket.count,
                           .period = std::chrono::seconds(bucket.seconds),
                           .burst = bucket.capacity}));
  if (!made) return std::unexpected(std::move(made.error()));
  replaced_->Keep(std::exchange(place.limit, std::move(*made)));
  place.bucket = bucket;
  return place.limit.get();
}

}  // namespace weir
