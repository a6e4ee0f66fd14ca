// Made-up traffic of which everything is known: who is normal, who is not, and when each came. And
// a reader that tells of it as if it had been in a log.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lab/log/log_reader.h"
#include "sim/random.h"

namespace weir::lab {

inline constexpr WallTime kTrafficBegins{std::chrono::sys_days(std::chrono::year(2026) / 3 / 2)};

struct LoggedArrival {
  WallTime time{};
  std::uint32_t client = 0;
};

struct LoggedTraffic {
  std::vector<std::string> names{};  // Addresses, by client.
  std::vector<bool> is_abuser{};
  std::vector<LoggedArrival> arrivals{};  // By time.

  std::uint32_t Add(bool abuser) {
    const auto id = static_cast<std::uint32_t>(names.size());
    names.push_back("10." + std::to_string(id >> 16U) + "." + std::to_string(id >> 8U & 255U) +
                    "." + std::to_string(id & 255U));
    is_abuser.push_back(abuser);
    return id;
  }
  void Sort() {
    std::ranges::sort(arrivals, {}, [](const LoggedArrival& arrival) {
      return arrival.time.time_since_epoch().count();
    });
  }

  // The exact peak of every client in any (t - length, t], by counting.
  std::vector<std::uint32_t> ExactPeaks(Duration length) const {
    std::vector<std::vector<WallTime>> times(names.size());
    for (const LoggedArrival& arrival : arrivals) times[arrival.client].push_back(arrival.time);
    std::vector<std::uint32_t> peaks;
    for (const std::vector<WallTime>& of : times) {
      std::size_t first = 0;
      std::size_t peak = 0;
      for (std::size_t last = 0; last < of.size(); ++last) {
        while (of[last] - of[first] >= length) ++first;
        peak = std::max(peak, last - first + 1);
      }
      peaks.push_back(static_cast<std::uint32_t>(peak));
    }
    return peaks;
  }
  // The least value that this part of all normal clients do not exceed, and the largest of theirs.
  std::uint32_t ExactQuantile(Duration length, double part) const {
    const std::vector<std::uint32_t> peaks = ExactPeaks(length);
    std::vector<std::uint32_t> normal;
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      if (!is_abuser[i]) normal.push_back(peaks[i]);
    }
    std::ranges::sort(normal);
    std::size_t rank = 1;
    while (static_cast<double>(rank) < part * static_cast<double>(normal.size()) - 1e-6) ++rank;
    return normal[rank - 1];
  }
};

// Chance for traffic, the same everywhere.
class TrafficRandom {
 public:
  explicit TrafficRandom(std::uint64_t seed) : random_(seed) {}
  double Uniform() { return (static_cast<double>(random_.Next() >> 11U) + 0.5) * 0x1p-53; }
  double Exponential(double mean) { return -mean * std::log(Uniform()); }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * 3.141592653589793 * Uniform());
  }

 private:
  sim::Random random_;
};

inline Duration Seconds(double seconds) {
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

struct TrafficPlan {
  int clients = 1'050;
  double hours = 3;
  // How busy a client is while it is there, in requests a minute.
  std::function<double(TrafficRandom&)> pace{};
  bool evenly = false;  // Like clockwork; otherwise by pages, each of several requests at once.
  int floods = 4;       // So many send some times the most of all others in a minute,
  double flood_from = 4;
  double flood_to = 12;
  int scrapers = 2;  // and so many keep to what others do in a minute, but never pause.
};

inline void AddVisit(LoggedTraffic& traffic, TrafficRandom& random, std::uint32_t client,
                     double from, double to, double pace, bool evenly) {
  const double step = 60 / pace;
  const auto add = [&](double at) {
    if (at < to) traffic.arrivals.push_back({kTrafficBegins + Seconds(at), client});
  };
  if (evenly) {
    for (double at = from; at < to; at += step) add(at);
    return;
  }
  constexpr double kPerPage = 6;
  for (double at = from; at < to; at += random.Exponential(step * kPerPage)) {
    double request = at;
    for (int i = 0; i < static_cast<int>(kPerPage); ++i) {
      add(request);
      request += random.Exponential(0.15);
    }
  }
}

inline LoggedTraffic MakeTraffic(const TrafficPlan& plan, std::uint64_t seed) {
  TrafficRandom random(seed);
  LoggedTraffic traffic;
  const double span = plan.hours * 3600;
  for (int i = 0; i < plan.clients; ++i) {
    const std::uint32_t client = traffic.Add(false);
    const double pace = plan.pace(random);
    for (int visit = 0; visit < 2; ++visit) {
      const double length = plan.evenly ? 90 : 60 + 60 * random.Uniform();
      const double from = random.Uniform() * (span - length);
      AddVisit(traffic, random, client, from, from + length, pace, plan.evenly);
    }
  }
  traffic.Sort();
  const std::uint32_t minute = traffic.ExactQuantile(std::chrono::minutes(1), 1);
  const std::uint32_t hour = traffic.ExactQuantile(std::chrono::hours(1), 1);
  for (int i = 0; i < plan.floods; ++i) {
    const double times = plan.flood_from + (plan.flood_to - plan.flood_from) * random.Uniform();
    const double from = random.Uniform() * (span - 60);
    AddVisit(traffic, random, traffic.Add(true), from, from + 60, times * minute, true);
  }
  for (int i = 0; i < plan.scrapers; ++i) {
    AddVisit(traffic, random, traffic.Add(true), 0, span, (8 + 4.0 * i) * hour / 60, true);
  }
  traffic.Sort();
  return traffic;
}

// Tells of traffic a few requests at a time.
class TrafficReader final : public LogReader {
 public:
  explicit TrafficReader(const LoggedTraffic& traffic) : traffic_(traffic) {
    counts_.push_back({.file = "made-up.log", .format = "combined", .whole_seconds = false});
  }

  std::span<const LogRecord> Next() override {
    constexpr std::size_t kMost = 512;
    records_.clear();
    while (records_.size() < kMost && next_ < traffic_.arrivals.size()) {
      const LoggedArrival& arrival = traffic_.arrivals[next_++];
      records_.push_back({.time = arrival.time,
                          .line = next_,
                          .ip = traffic_.names[arrival.client],
                          .method = "GET",
                          .path = "/"});
    }
    counts_.front().lines += records_.size();
    counts_.front().requests += records_.size();
    return records_;
  }
  const std::vector<LogCounts>& counts() const override { return counts_; }

 private:
  const LoggedTraffic& traffic_;
  std::size_t next_ = 0;
  std::vector<LogRecord> records_;
  std::vector<LogCounts> counts_;
};

}  // namespace weir::lab
