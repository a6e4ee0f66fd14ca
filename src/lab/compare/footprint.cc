// What a key takes, by making many.
#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lab/compare/engine_alone.h"
#include "lab/compare/trial.h"

namespace weir::lab {
namespace {

// Tables of more than 4 MB grow by a quarter at a time; from this many keys on, they are that
// large.
constexpr int kManyBuckets = 200'000;
constexpr int kManyWindows = 100'000;
constexpr int kManyStrictWindows = 40'000;
constexpr int kLookEvery = 250;  // Keys.
// Logs are filled with about so many requests, by so many keys.
constexpr std::int64_t kManyRequests = 150'000;
constexpr std::int64_t kFewestLogs = 2;
constexpr std::int64_t kMostLogs = 10'000;

int ManyKeys(const Limit& limit) {
  if (IsBucket(limit)) return kManyBuckets;
  return limit.spec().strict ? kManyStrictWindows : kManyWindows;
}

class Store {
 public:
  explicit Store(const Limit& limit) : limit_(limit) {}

  // Many at a time, because that is faster.
  void UseOnce(int first_key, int keys) {
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(keys));
    for (int i = 0; i < keys; ++i) names.push_back(std::to_string(first_key + i));
    std::vector<LimitRequest> requests;
    requests.reserve(names.size());
    for (const std::string& name : names) requests.push_back({.key = name, .limit = &limit_});
    alone_.Check(requests, Duration(0));
  }
  void Use(int key, Duration at) {
    const std::string name = std::to_string(key);
    LimitRequest request{.key = name, .limit = &limit_};
    alone_.Check({&request, 1}, at);
  }
  double Bytes() const { return static_cast<double>(alone_.Bytes() - empty_); }

 private:
  const Limit& limit_;
  EngineAlone alone_{WallTime(std::chrono::hours(24))};
  const std::size_t empty_ = alone_.Bytes();
};

// Of keys that were used once: the most between two growths.
double AfterOneRequest(const Limit& limit) {
  const int fewest = ManyKeys(limit);
  Store store(limit);
  double most = 0;
  for (int keys = kLookEvery; keys <= fewest + fewest / 4; keys += kLookEvery) {
    store.UseOnce(keys - kLookEvery, kLookEvery);
    if (keys >= fewest) most = std::max(most, store.Bytes() / keys);
  }
  return most;
}

// What a log that is full takes beyond one that was used once.
double RestOfLog(const Limit& limit) {
  const std::int64_t count = limit.spec().count;
  const int keys = static_cast<int>(std::clamp(kManyRequests / count, kFewestLogs, kMostLogs));
  Store once(limit);
  Store full(limit);
  once.UseOnce(0, keys);
  // Each at its own time: what comes at the same time is remembered as one.
  for (int key = 0; key < keys; ++key) {
    for (std::int64_t i = 0; i < count; ++i) full.Use(key, Duration(i));
  }
  return (full.Bytes() - once.Bytes()) / keys;
}

double Measure(const Limit& limit) {
  const bool is_log = limit.algorithm() == Algorithm::kSlidingLog;
  return AfterOneRequest(limit) + (is_log ? RestOfLog(limit) : 0);
}

// What the state of a key depends on. The rate, the burst and the length of windows are no part of
// it.
struct Kind {
  Algorithm algorithm;
  bool strict;
  std::int64_t log_length;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};

}  // namespace

// Each kind is measured once in a process.
double BytesPerKey(const Limit& limit) {
  static std::mutex mutex;
  static std::map<Kind, double> measured;
  const bool is_log = limit.algorithm() == Algorithm::kSlidingLog;
  const Kind kind{limit.algorithm(), limit.spec().strict, is_log ? limit.spec().count : 0};
  const std::scoped_lock guard(mutex);
  const auto found = measured.find(kind);
  if (found != measured.end()) return found->second;
  return measured[kind] = Measure(limit);
}

}  // namespace weir::lab
