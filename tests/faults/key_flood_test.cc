// long
// A flood of keys that never come twice, against a cap on memory: what an attacker does who makes
// up a new address or token for every request.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"

namespace weir {
namespace {

using std::chrono::nanoseconds;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSlowBuild = true;
#elif defined(__has_feature)
constexpr bool kSlowBuild = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSlowBuild = false;
#endif

// A sanitizer makes each check some thirty times slower and counts its own memory as ours.
const std::uint64_t kFloodKeys = kSlowBuild                             ? 1'000'000
                                 : std::getenv("WEIR_SHORT") != nullptr ? 30'000'000
                                                                        : 100'000'000;
constexpr std::size_t kCapBytes = std::size_t{kSlowBuild ? 4 : 256} << 20;
// More keys than the cap has room for.
constexpr std::uint64_t kFullAfter = kSlowBuild ? 400'000 : 20'000'000;
constexpr std::uint64_t kBatch = 32;
constexpr std::uint64_t kSeed = 20'251'115;

std::size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

Limit LimitOf(std::string_view text) { return Limit::Parse(text).value(); }

struct Flood {
  MemoryStore store;
  Now now;
  std::uint64_t sent = 0;

  explicit Flood(Now start)
      : store({.cap_bytes = kCapBytes, .hash_seed = kSeed}, start), now(start) {}

  // One batch of new keys under `limit`; time goes on by 10 ns for each.
  void SendBatch(const Limit& limit) {
    std::array<Charge, kBatch> charges;
    std::array<Decision, kBatch> decisions;
    for (Charge& charge : charges) {
      const std::uint64_t key = sent++;
      const std::string_view bytes(reinterpret_cast<const char*>(&key), sizeof(key));
      charge = {.hash = store.Hash(bytes), .limit = &limit};
    }
    now.steady += nanoseconds(10) * kBatch;
    now.wall += nanoseconds(10) * kBatch;
    store.DecideEach(charges, now, decisions);
  }
};

Now StartOfTest() {
  return {SteadyTime(std::chrono::hours(1)), WallTime(std::chrono::days(20'000))};
}

TEST(KeyFlood, StaysWithinTheCapAndKeepsTheExhaustedKeyDenied) {
  const std::size_t resident_before = ResidentBytes();
  Flood flood(StartOfTest());
  const Limit slow = LimitOf("1/h");    // The flood is under the slower limit,
  const Limit fast = LimitOf("5/min");  // so every entry of it outlives the knocker's.
  const Charge knock{.hash = flood.store.Hash("knocker"), .limit = &fast};

  std::int64_t admitted = 0;
  std::size_t most_resident = 0;
  std::uint64_t evicted_at_half = 0;
  while (flood.sent < kFloodKeys) {
    flood.SendBatch(slow);
    if (flood.sent % (kBatch * 8) == 0)
      admitted += flood.store.Decide(knock, flood.now).allowed ? 1 : 0;
    if (flood.sent % (kBatch << 16) == 0) most_resident = std::max(most_resident, ResidentBytes());
    if (flood.sent == kFloodKeys / 2 / kBatch * kBatch) {
      evicted_at_half = flood.store.Stats().evicted_live;
    }
  }
  most_resident = std::max(most_resident, ResidentBytes());

  const MemoryStoreStats stats = flood.store.Stats();
  const double grown = static_cast<double>(most_resident - resident_before);
  std::printf(
      "%llu keys: %.1f MiB resident for a cap of %zu MiB, %llu evicted, %llu of them denied\n",
      static_cast<unsigned long long>(flood.sent), grown / (1 << 20), kCapBytes >> 20,
      static_cast<unsigned long long>(stats.evicted_live + stats.evicted_denied),
      static_cast<unsigned long long>(stats.evicted_denied));
  EXPECT_EQ(admitted, 5) << "the flood set the knocker free";
  EXPECT_LE(stats.bytes, kCapBytes);
  if (!kSlowBuild) {
    EXPECT_LE(grown, 1.1 * static_cast<double>(kCapBytes));
  }
  EXPECT_GT(evicted_at_half, 0U);
  EXPECT_GT(stats.evicted_live, evicted_at_half);
}

TEST(KeyFlood, MakesRoomForAFasterLimitToo) {
  Flood flood(StartOfTest());
  const Limit slow = LimitOf("1/day");
  const Limit fast = LimitOf("100/s");
  while (flood.sent < kFullAfter) flood.SendBatch(slow);
  ASSERT_GT(flood.store.Stats().evicted_live, 0U);
  // Keys that would be fresh again before any entry of the flood are counted all the same.
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "user:" + std::to_string(i);
    const Charge charge{.hash = flood.store.Hash(key), .limit = &fast};
    int admitted = 0;
    for (int n = 0; n < 150; ++n) admitted += flood.store.Decide(charge, flood.now).allowed ? 1 : 0;
    EXPECT_EQ(admitted, 100) << key;
  }
}

}  // namespace
}  // namespace weir
