// The peer that a C++ programmer would write: boost::unordered_flat_map in 64 shards, each behind
// a spinlock. Hash, step, decision and clock are Weir's own, so that only the table differs.
//
// Shards are chosen by middle bits of the hash, because the map uses the high and the low ones.
// Compiled apart from the benchmark loop, as Weir's library is.
#pragma once

#include <emmintrin.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <boost/unordered/unordered_flat_map.hpp>

#include <weir/clock.h>
#include <weir/limiter.h>

#include "algorithm/token_bucket.h"
#include "base/hash.h"

namespace weir::bench {

// A key with its hash, so that it is hashed once and not again by the map.
struct HashedKey {
  std::string_view text;
  std::uint64_t hash;
};

// The fingerprint is the key, as it is in Weir. It is a hash already.
struct ByFingerprint {
  struct Hash {
    using is_avalanching = void;
    std::size_t operator()(std::uint64_t fingerprint) const noexcept { return fingerprint; }
  };
  using Map = boost::unordered_flat_map<std::uint64_t, BucketState, Hash>;

  static Map MakeMap(const KeyHasher&) { return Map(); }
  static auto Find(Map& map, const HashedKey& key) noexcept { return map.find(key.hash); }
  static void Insert(Map& map, const HashedKey& key, BucketState state) {
    map.emplace(key.hash, state);
  }
};

// The text is the key.
struct ByString {
  struct Hash {
    using is_avalanching = void;
    using is_transparent = void;
    const KeyHasher* hasher = nullptr;
    std::size_t operator()(const HashedKey& key) const noexcept { return key.hash; }
    std::size_t operator()(const std::string& key) const noexcept { return (*hasher)(key); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const HashedKey& a, const std::string& b) const noexcept { return a.text == b; }
    bool operator()(const std::string& a, const HashedKey& b) const noexcept { return a == b.text; }
    bool operator()(const std::string& a, const std::string& b) const noexcept { return a == b; }
  };
  using Map = boost::unordered_flat_map<std::string, BucketState, Hash, Equal>;

  static Map MakeMap(const KeyHasher& hasher) { return Map(0, Hash{&hasher}); }
  static auto Find(Map& map, const HashedKey& key) noexcept { return map.find(key); }
  static void Insert(Map& map, const HashedKey& key, BucketState state) {
    map.emplace(std::string(key.text), state);
  }
};

// Thread-safe. The same methods as Limiter, as far as the benchmark uses them.
template <typename By>
class BoostStore {
 public:
  // Makes room for `expected_keys` unless it is 0.
  BoostStore(const Limit& limit, std::size_t expected_keys);

  Decision Check(std::string_view key) noexcept;
  Decision Check(std::string_view key, Now now) noexcept;
  // Hashes all keys before the first is looked up. The map has no way to prefetch.
  Result<void> CheckBatch(std::span<const BatchItem> items, std::span<Decision> decisions) noexcept;
  Result<void> CheckBatch(std::span<const BatchItem> items, std::span<Decision> decisions,
                          Now now) noexcept;

  Decision Peek(std::string_view key) noexcept;
  std::size_t entries() noexcept;

 private:
  class SpinLock {
   public:
    void lock() noexcept {
      while (taken_.exchange(true, std::memory_order_acquire)) {
        while (taken_.load(std::memory_order_relaxed)) _mm_pause();
      }
    }
    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> taken_{false};
  };
  struct alignas(64) Shard {
    SpinLock lock;
    typename By::Map map;
  };

  static constexpr std::size_t kShards = 64;
  static constexpr int kShardBit = 29;

  Shard& ShardOf(std::uint64_t hash) noexcept { return shards_[hash >> kShardBit & (kShards - 1)]; }
  BucketVerdict Judge(const HashedKey& key, const StepRequest& request, Ticks now) noexcept;
  Decision Decide(const HashedKey& key, const StepRequest& request, Ticks now) noexcept;

  const Limit limit_;
  const std::string name_;
  Clock& clock_;
  KeyHasher hasher_;
  Timeline timeline_;
  std::array<Shard, kShards> shards_;
};

extern template class BoostStore<ByFingerprint>;
extern template class BoostStore<ByString>;

}  // namespace weir::bench
