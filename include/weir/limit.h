// A limit: how much per what, and by which algorithm it is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <weir/result.h>
#include <weir/time.h>

namespace weir {

class Calendar;

enum class Algorithm : std::uint8_t {
  kTokenBucket,    // Bursts up to `burst`, then a steady rate. The default.
  kLeakyBucket,    // The same as a meter; with `queue`, spreads requests out by delaying them.
  kFixedWindow,    // A count per window; up to twice the limit across a boundary.
  kSlidingWindow,  // Two counts, weighted; with `strict`, never above the limit in any window.
  kSlidingLog,     // Remembers every admission: exact, at a price in memory.
  kConcurrency,    // How many at once rather than how many per time.
};

enum class Align : std::uint8_t {
  kEpoch,     // Windows start at whole multiples of the period since 1970.
  kCalendar,  // Windows are the local days, weeks, months or years of `zone`.
};

enum class CalendarPeriod : std::uint8_t { kNone, kDay, kWeek, kMonth, kYear };

// What to do about a limit while the shared store that counts it cannot be asked.
enum class FailureMode : std::uint8_t {
  kStatic,  // This process's share of the limit.
  kOpen,    // Let everything through.
  kClosed,  // Refuse everything.
};

// What kind of answer a limit gives. Only kCounted has a count and a period.
enum class LimitKind : std::uint8_t { kCounted, kUnlimited, kDeny };

// Everything that may be said about a limit, with its defaults. Plain data: nothing is checked
// until Limit::Make.
struct LimitSpec {
  LimitKind kind = LimitKind::kCounted;
  Algorithm algorithm = Algorithm::kTokenBucket;

  // `count` units per `period`. For concurrency `count` is how many at once.
  std::int64_t count = 0;
  Duration period{0};

  // Buckets: how much may come at once. 0 means `count`.
  std::int64_t burst = 0;

  // Leaky bucket: admit into a queue of `burst` and say how long each request should wait,
  // rather than letting a burst through at once.
  bool queue = false;

  // Allow as long as anything is left and charge the whole cost, going into debt. For costs that
  // are known only afterwards. Debt ends at twice the capacity: what is above is forgiven.
  bool overdraft = false;

  // Sliding window: count in whole sub-windows, so that no window of any alignment ever sees more
  // than the limit, at the price of refusing up to period / sub_windows longer than needed.
  bool strict = false;
  int sub_windows = 10;

  // Fixed window: where windows begin. With kCalendar set `calendar` instead of `period`.
  Align align = Align::kEpoch;
  CalendarPeriod calendar = CalendarPeriod::kNone;
  std::string zone = "UTC";
  std::chrono::weekday week_start = std::chrono::Monday;

  // Concurrency: after this long a holder that never released is taken for dead.
  Duration lease = std::chrono::seconds(30);

  // The longest wait a request may ask for. State further ahead than this could account for is
  // taken for a broken clock and pulled back.
  Duration max_wait = std::chrono::seconds(60);

  friend bool operator==(const LimitSpec&, const LimitSpec&) = default;
};

// The ranges that Limit::Make accepts. The rate is bounded for buckets only, because they round the
// interval between two units; windows and logs count exactly, so their counts are all that matters.
inline constexpr std::int64_t kMaxCount = 1'000'000'000'000'000;  // Counts and costs.
inline constexpr std::int64_t kMaxBucketRate = 10'000'000;        // Units a second.
inline constexpr Duration kMaxPeriod = std::chrono::hours(24 * 366);
inline constexpr Duration kMaxBurstTime = std::chrono::hours(24 * 366);  // To fill a bucket.
inline constexpr std::int64_t kMaxLogEntries = 65'536;                   // Log and concurrency.
// What a store shared by several processes takes: it counts in whole nanoseconds.
inline constexpr std::int64_t kMaxSharedBucketRate = 1'000'000;
inline constexpr std::int64_t kMaxSharedLogEntries = 10'000;
inline constexpr int kMinSubWindows = 2;
inline constexpr int kMaxSubWindows = 60;
inline constexpr Duration kMinWindow = std::chrono::milliseconds(1);
inline constexpr Duration kMaxWait = std::chrono::hours(1);

// A LimitSpec that was checked, with what the algorithms need worked out in advance. Immutable,
// cheap to copy, safe to share between threads.
class Limit {
 public:
  [[nodiscard]] static Result<Limit> Make(const LimitSpec& spec);

  // Reads "100/min burst 50", "5/30s", "20 concurrent lease 30s", "unlimited" or "deny"; everything
  // that text does not say is taken from `defaults`.
  [[nodiscard]] static Result<Limit> Parse(std::string_view text, LimitSpec defaults = {});

  // This limit as the successor of `before`, in force from `now` on: keys that `before` already
  // counted keep what they have used (a bucket its time to full, clamped to the new capacity; a
  // window its count, in proportion and rounded up). Another algorithm or window length starts
  // anew. An equal limit is no change: `before` is returned as it is. Of limits that follow each
  // other quickly the last eight are remembered.
  Limit Replacing(const Limit& before, Now now) const;
  // The same, but a change even if the two are equal: for one of several limits that share the
  // state of their keys, when another of them changes.
  Limit ReplacingAmongOthers(const Limit& before, Now now) const;
  // This limit with the past of `other`, as if it had been in force all the while: to replace one
  // of several that share the state of their keys, when nobody can tell which. Counts are then
  // kept as they are.
  Limit InPlaceOf(const Limit& other) const;

  // This limit as a store shared by several processes counts it: in whole nanoseconds, T and
  // sub-windows rounded up. An error if it is beyond what such a store takes.
  [[nodiscard]] Result<Limit> ForSharedStore() const;

  // These limits count the same keys, each some of the time: what one of them leaves behind is no
  // damage to another, however much smaller that is.
  static void ShareKeys(std::span<Limit> limits) noexcept;
  // This limit, for keys that any other may count as well.
  Limit SharingKeysWithAny() const;

  const LimitSpec& spec() const noexcept { return spec_; }
  LimitKind kind() const noexcept { return spec_.kind; }
  Algorithm algorithm() const noexcept { return spec_.algorithm; }

  // The most that can be had at once: burst, window limit or number of leases.
  std::int64_t capacity() const noexcept { return capacity_; }
  // How long a key takes to be fresh again at most, debt and waits booked ahead included. Not what
  // another limit did that shares the key.
  Duration time_to_fresh() const noexcept { return time_to_fresh_; }

  // How long it takes to have the whole capacity anew: the time to fill a bucket, or a window; of
  // the calendar's the longest, as the calendar has it. Zero where time brings nothing back.
  Duration refill_time() const noexcept { return refill_time_; }

  // In text that Parse reads back.
  std::string ToString() const;

  // --- What the algorithms work with. Times in sixteenths of a nanosecond (see Ticks). ---

  std::int64_t emission_interval() const noexcept { return emission_interval_; }  // T
  std::int64_t burst_tolerance() const noexcept { return burst_tolerance_; }      // tau = burst T
  // 2^64 / T, rounded down: dividing by T is a third of a check otherwise.
  std::uint64_t emission_reciprocal() const noexcept { return emission_reciprocal_; }
  std::int64_t window() const noexcept { return window_; }
  std::int64_t sub_window() const noexcept { return sub_window_; }
  std::int64_t max_wait() const noexcept { return max_wait_; }
  // How far ahead the state of a bucket may be: what is further was not left by any limit.
  std::int64_t furthest() const noexcept { return furthest_; }
  // Neither a queue nor with overdraft.
  bool is_plain_bucket() const noexcept { return is_plain_bucket_; }
  const Calendar* calendar() const noexcept { return calendar_.get(); }

  // The same in every process: of this limit and of those that share its keys. A shared store keeps
  // it with counts, to see that a policy has changed: then, and not when a key goes from one of
  // these limits to another, counts are scaled.
  std::uint32_t family() const noexcept { return family_; }

  // Sets the state of different algorithms, window lengths and successive limits apart, under
  // the same key.
  std::uint64_t state_salt() const noexcept { return state_salt_; }
  // The limit whose state this one takes over, or null. It may have a predecessor in turn; nothing
  // of either is left after `until`.
  const Limit* predecessor() const noexcept { return predecessor_.get(); }
  SteadyTime predecessor_until() const noexcept { return predecessor_until_; }
  // How many limits were in force before it, and what makes its salt another than theirs.
  std::uint64_t generation() const noexcept { return generation_; }

  // What a limit has been through, for those who keep state longer than a process lives.
  struct Past {
    std::uint64_t generation = 0;  // One more than that of the predecessor, if there is one.
    std::int64_t furthest = 0;     // Buckets.
    std::shared_ptr<const Limit> predecessor{};
    SteadyTime predecessor_until{};
  };
  // This limit with a past. An error if there can be no such.
  [[nodiscard]] Result<Limit> WithPast(const Past& past) const;

 private:
  Limit() = default;

  bool is_bucket() const noexcept {
    return kind() == LimitKind::kCounted &&
           (algorithm() == Algorithm::kTokenBucket || algorithm() == Algorithm::kLeakyBucket);
  }
  void WorkOutBucket();
  void SetEmissionInterval(std::int64_t interval) noexcept;
  // The deepest debt, and what waiting may have booked beyond it.
  std::int64_t FurthestByItself() const noexcept { return 2 * burst_tolerance_ + max_wait_; }
  void SetFurthest(std::int64_t furthest) noexcept;
  void WorkOutWindow();
  void SetSubWindow(std::int64_t length) noexcept;
  // A copy that remembers at most so many predecessors, and none that has nothing left.
  Limit Remembering(int predecessors, SteadyTime now) const;

  std::int64_t emission_interval_ = 0;
  std::int64_t burst_tolerance_ = 0;
  std::uint64_t emission_reciprocal_ = 0;
  std::int64_t capacity_ = 0;
  std::uint64_t state_salt_ = 0;
  std::int64_t max_wait_ = 0;
  std::int64_t furthest_ = 0;
  bool is_plain_bucket_ = false;
  std::int64_t window_ = 0;
  std::int64_t sub_window_ = 0;
  Duration time_to_fresh_{0};
  Duration refill_time_{0};
  LimitSpec spec_;
  std::shared_ptr<const Calendar> calendar_;
  std::shared_ptr<const Limit> predecessor_;
  SteadyTime predecessor_until_;
  std::uint64_t generation_ = 0;
  std::uint32_t family_ = 0;
};

// "token_bucket", "sliding_log": the names used in policies and on the wire.
std::string_view NameOf(Algorithm algorithm) noexcept;
Result<Algorithm> ParseAlgorithm(std::string_view name);

}  // namespace weir
