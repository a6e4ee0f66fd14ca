// Limits that come with requests rather than from a policy. Reading and making one costs far more
// than a check, and programs send the same few again and again, so the last ones are kept.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <weir/limit.h>
#include <weir/result.h>

namespace weir {

// For one thread.
class LimitCache {
 public:
  // What is found stays good for so many further calls, so that requests can be gathered.
  static constexpr std::size_t kGoodFor = 64;

  // Whether a store shared by several processes counts them.
  explicit LimitCache(bool shared = false);
  LimitCache(const LimitCache&) = delete;
  LimitCache& operator=(const LimitCache&) = delete;
  ~LimitCache();

  // "100/min burst 50", and the name of an algorithm or nothing.
  Result<const Limit*> Find(std::string_view text, std::string_view algorithm);

  // `count` per so many seconds, `capacity` at once: a bucket.
  struct Bucket {
    std::int64_t capacity = 0;
    std::int64_t count = 0;
    std::int64_t seconds = 0;
    friend bool operator==(const Bucket&, const Bucket&) = default;
  };
  Result<const Limit*> Find(const Bucket& bucket);

  // Another store may count them from now on. What was found is not good any more.
  void SetShared(bool shared);

 private:
  static constexpr std::size_t kPlaces = 256;  // Of each kind; one that is taken is replaced.
  struct Texts;
  struct Buckets;
  class Replaced;
  // As the store counts it.
  Result<std::unique_ptr<const Limit>> Prepare(Result<Limit> limit) const;

  bool shared_;
  std::unique_ptr<Texts> texts_;
  std::unique_ptr<Buckets> buckets_;
  std::unique_ptr<Replaced> replaced_;
};

}  // namespace weir
