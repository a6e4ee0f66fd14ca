// What numbers, lengths and sizes in a policy may be: one table for those who read them from a file
// and those who check a policy made in code.
#pragma once

#include <chrono>
#include <cstdint>

#include <weir/limit.h>
#include <weir/time.h>

namespace weir {

template <typename Value>
struct Range {
  Value least;
  Value most;

  constexpr bool Has(Value value) const { return value >= least && value <= most; }
};

inline constexpr Range<std::int64_t> kCostRange{0, kMaxCount};
inline constexpr Range<int> kSubWindowRange{kMinSubWindows, kMaxSubWindows};
inline constexpr Range<Duration> kBanRange{std::chrono::milliseconds(1), kMaxPeriod};
inline constexpr Range<double> kPercentRange{0, 100};

inline constexpr Range<int> kIpv4PrefixRange{1, 32};
inline constexpr Range<int> kIpv6PrefixRange{1, 128};
// Shorter ones would count whole countries as one client.
inline constexpr Range<int> kDefaultIpv6PrefixRange{16, 128};
inline constexpr Range<int> kHopRange{1, 32};

inline constexpr Range<int> kFleetRange{1, 1'000'000};
inline constexpr Range<Duration> kWaitRange{Duration(0), kMaxWait};
inline constexpr Range<Duration> kTimeoutRange{std::chrono::milliseconds(1),
                                               std::chrono::minutes(1)};
inline constexpr Range<int> kConnectionRange{1, 64};
inline constexpr Range<int> kInFlightRange{1, 1'000'000};
inline constexpr Range<std::int64_t> kServiceCountRange{1, 100'000'000};
inline constexpr Range<std::int64_t> kServiceSizeRange{256, std::int64_t{1} << 30};
inline constexpr Range<std::int64_t> kCommandSizeRange{std::int64_t{1} << 10,
                                                       std::int64_t{64} << 20};
inline constexpr Range<std::int64_t> kBuffersRange{std::int64_t{1} << 20, std::int64_t{1} << 40};
inline constexpr Range<Duration> kIdleRange{std::chrono::seconds(1), std::chrono::days(1)};
inline constexpr Range<Duration> kClientRange{std::chrono::milliseconds(100),
                                              std::chrono::hours(1)};
inline constexpr Range<std::int64_t> kMemoryCapRange{std::int64_t{2} << 20,
                                                     std::int64_t{256} << 30};

// How deep matches may stand in matches, the outermost included. A file has 32 levels of maps and
// lists, and a match in a list takes two.
inline constexpr int kMaxMatchDepth = 12;

}  // namespace weir
