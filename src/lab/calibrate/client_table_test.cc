#include "lab/calibrate/client_table.h"

#include <gtest/gtest.h>

#include "lab/calibrate/traffic_under_test.h"

namespace weir::lab {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

std::uint32_t Peak(const ClientTable& table, std::size_t period, ClientId id = 0) {
  return table[id].windows[period].peak();
}

TEST(ClientTable, FindsThePeakWhereverItsWindowBegins) {
  ClientTable table;
  // Ten before a full minute and ten after it.
  for (int i = 0; i < 20; ++i) table.Count(7, kTrafficBegins + seconds(50 + i));
  EXPECT_EQ(Peak(table, kSecond), 1U);
  EXPECT_EQ(Peak(table, kMinute), 20U);
}

TEST(ClientTable, CountsNobodyTwiceWhoComesOncePerPeriod) {
  ClientTable table;
  for (int i = 0; i < 100; ++i) {
    for (int burst = 0; burst < 5; ++burst) table.Count(7, kTrafficBegins + i * minutes(1));
  }
  EXPECT_EQ(Peak(table, kSecond), 5U);
  EXPECT_EQ(Peak(table, kMinute), 5U);
  EXPECT_EQ(Peak(table, kHour), 300U);
}

TEST(ClientTable, KeepsApartWhatIsAnothers) {
  ClientTable table;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    for (std::uint64_t n = 0; n <= i % 3; ++n) table.Count(Mix(i), kTrafficBegins);
  }
  ASSERT_EQ(table.size(), 5'000U);
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    const std::optional<ClientId> id = table.Find(Mix(i));
    ASSERT_EQ(id, i);
    EXPECT_EQ(table[*id].requests, i % 3 + 1);
    EXPECT_EQ(Peak(table, kDay, *id), i % 3 + 1);
  }
  EXPECT_FALSE(table.Find(Mix(5'000)));
}

// Windows of the shortest kind wrap around every twelve days.
TEST(ClientTable, RemembersNothingOfLongAgo) {
  ClientTable table;
  for (int day = 0; day < 400; ++day) {
    table.Count(7, kTrafficBegins + day * hours(24));
    table.Count(7, kTrafficBegins + day * hours(24) + milliseconds(10));
  }
  for (std::size_t period = 0; period < kPeriods; ++period) EXPECT_EQ(Peak(table, period), 2U);
  EXPECT_EQ(table[0].requests, 800U);
}

// What is found lies between the exact peaks of windows that are shorter and longer by a run.
TEST(ClientTable, IsAsCloseToTheExactPeaksAsItSays) {
  const std::array<double, kPeriods> longest_run = {1.0 / 1000, 1.0 / 1000, 1.0 / 128, 1.0 / 64};
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    TrafficRandom random(seed);
    LoggedTraffic traffic;
    for (int i = 0; i < 20; ++i) {
      const std::uint32_t client = traffic.Add(false);
      const double mean = std::pow(10, -1 + 4 * random.Uniform());  // Seconds.
      double at = 0;
      for (int n = 0; n < 1'000; ++n) {
        at += random.Uniform() < 0.5 ? random.Exponential(mean) : random.Exponential(0.1);
        traffic.arrivals.push_back({kTrafficBegins + Seconds(at), client});
      }
    }
    traffic.Sort();
    ClientTable table;
    for (const LoggedArrival& arrival : traffic.arrivals) table.Count(arrival.client, arrival.time);
    for (std::size_t period = 0; period < kPeriods; ++period) {
      const double length = std::chrono::duration<double>(kAllPeriods[period].length).count();
      // Times are cut to 1/4000 as well.
      const double run = length * (longest_run[period] + 1.0 / 4000);
      const auto least = traffic.ExactPeaks(Seconds(length - run));
      const auto most = traffic.ExactPeaks(Seconds(length + run));
      for (std::uint32_t client = 0; client < traffic.names.size(); ++client) {
        const std::uint32_t found = Peak(table, period, *table.Find(client));
        EXPECT_GE(found, least[client]) << "seed " << seed << ", period " << period;
        EXPECT_LE(found, most[client]) << "seed " << seed << ", period " << period;
      }
    }
  }
}

TEST(ClientTable, GrowsWithClientsAndNotWithRequests) {
  ClientTable table;
  const auto bytes_after = [&](int from, int to) {
    for (int second = from; second < to; ++second) {
      for (std::uint64_t client = 0; client < 20; ++client) {
        table.Count(Mix(client), kTrafficBegins + seconds(second));
      }
    }
    return table.bytes();
  };
  bytes_after(0, 3'000);
  const std::size_t after_an_hour = bytes_after(3'000, 6'000);
  EXPECT_LE(bytes_after(6'000, 24'000), 2 * after_an_hour);
}

// Whoever is gone leaves nothing behind but what is always kept.
TEST(ClientTable, TakesBackTheRoomOfThoseWhoLeft) {
  ClientTable table;
  std::uint64_t client = 0;
  for (int day = 0; day < 40; ++day) {
    for (int i = 0; i < 300; ++i) {
      ++client;
      for (int n = 0; n < 20; ++n) {
        table.Count(Mix(client), kTrafficBegins + day * hours(24) + minutes(i * 4 + n % 4));
      }
    }
  }
  EXPECT_LT(table.bytes() / table.size(), 400U);
}

}  // namespace
}  // namespace weir::lab
