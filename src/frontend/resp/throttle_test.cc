// CL.THROTTLE against a model of redis-cell that shares nothing with what it is compared to, and
// THROTTLE against the order of throttlecrab's replies.
#include "frontend/resp/throttle.h"

#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/resp/resp_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ClThrottle, SaysWhatRedisCellSays) {
  RespUnderTest resp(kOneRule);
  for (int k = 1; k <= 16; ++k) {
    const std::string expected =
        "[0, 16, " + std::to_string(16 - k) + ", -1, " + std::to_string(2 * k) + "]";
    EXPECT_EQ(resp.Ask("CL.THROTTLE user:1 15 30 60"), expected);
  }
  EXPECT_EQ(resp.Ask("CL.THROTTLE user:1 15 30 60"), "[1, 16, 0, 2, 32]");
  EXPECT_EQ(resp.Ask("CL.THROTTLE user:2 15 30 60 17"), "[1, 16, 16, -1, 0]");
  EXPECT_EQ(resp.Ask("cl.throttle user:3 0 1 2"), "[0, 1, 0, -1, 2]");
  EXPECT_EQ(resp.Ask("cl.throttle user:3 0 1 2"), "[1, 1, 0, 2, 2]");
}

TEST(ClThrottle, DropsWhatIsLessThanAMillisecond) {
  RespUnderTest resp(kOneRule);
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 0 1 2"), "[0, 1, 0, -1, 2]");
  resp.exchange.clock.Advance(1s - 999us);  // 1.000999 s are left, which are 1 s and no more.
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 0 1 2"), "[1, 1, 0, 1, 1]");
  resp.exchange.clock.Advance(-1us);
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 0 1 2"), "[1, 1, 0, 2, 2]");
}

TEST(ClThrottle, AnswersACallForNothingByWhetherTheKeyIsWithinItsBounds) {
  RespUnderTest resp(kOneRule);
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 1 1 10 0"), "[0, 2, 2, -1, 0]");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 1 1 10 2"), "[0, 2, 0, -1, 20]");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 1 1 10 0"), "[0, 2, 0, -1, 20]");
  // Under a smaller bucket the same debt is out of bounds.
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 0 1 10 0"), "[1, 1, 0, 10, 20]");
}

TEST(ClThrottle, TakesNoCallForTheOneBeforeIt) {
  RespUnderTest resp(kOneRule);
  // The same bytes behind the key, cut into other words.
  const std::string four = "*6\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n";
  const std::string three = "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n";
  const std::string bytes = "15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n1\r\n";
  const std::vector<std::string> replies = RespUnderTest::ShowAll(
      resp.exchange.Send(four + "$2\r\n" + bytes + three + "$10\r\n" + bytes));
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0], "[0, 16, 15, -1, 2]");
  EXPECT_THAT(replies[1], StartsWith("-ERR max_burst: "));
  EXPECT_THAT(
      resp.AskAll({"CL.THROTTLE a 15 30 60", "CL.THROTTLE b 15 30 60", "THROTTLE c 15 30 60",
                   "CL.THROTTLE d 15 30 60 2", "CL.THROTTLE e 15 30 61", "CL.THROTTLE f 15 30 0",
                   "CL.THROTTLE g 15 30 0"}),
      testing::ElementsAre("[0, 16, 15, -1, 2]", "[0, 16, 15, -1, 2]", "[1, 15, 14, 2, 0]",
                           "[0, 16, 14, -1, 4]", "[0, 16, 15, -1, 3]",
                           StartsWith("-ERR Cell error"), StartsWith("-ERR Cell error")));
}

TEST(ClThrottle, TakesBackNothingThatAnotherLimitCounted) {
  RespUnderTest resp(kOneRule);
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 99 100 36000 50"), "[0, 100, 50, -1, 18000]");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 1 10 60"), "[1, 2, 0, 17994, 18000]");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 1 10 60 0"), "[1, 2, 0, 17988, 18000]");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 99 100 36000 1"), "[0, 100, 49, -1, 18360]");
}

TEST(ClThrottle, KeepsUpWithMoreLimitsThanAreKept) {
  RespUnderTest resp(kOneRule);
  std::vector<std::string> commands;
  for (int i = 0; i < 300; ++i) {
    commands.push_back("CL.THROTTLE a 15 30 60 0");
    commands.push_back("CL.THROTTLE b " + std::to_string(i) + " 30 60 0");
    for (int j = 0; j < 3; ++j) {
      commands.push_back("WEIR.LIMIT c " + std::to_string(i * 3 + j + 1) + "/min @cost 0");
    }
  }
  const std::vector<std::string> replies = resp.AskAll(commands);
  ASSERT_EQ(replies.size(), commands.size());
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string limit = std::to_string(i + 1);
    EXPECT_EQ(replies[i * 5], "[0, 16, 16, -1, 0]");
    EXPECT_EQ(replies[i * 5 + 1], "[0, " + limit + ", " + limit + ", -1, 0]");
    EXPECT_THAT(replies[i * 5 + 2], HasSubstr("limit, " + std::to_string(i * 3 + 1) + ","));
  }
}

TEST(ClThrottle, GivesBackForANegativeQuantity) {
  RespUnderTest resp(kOneRule);
  resp.Ask("CL.THROTTLE k 15 30 60 10");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 15 30 60 -4"), "[0, 16, 10, -1, 12]");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 15 30 60 -100"), "[0, 16, 16, -1, 0]");
}

TEST(ClThrottle, RefusesWhatCannotBe) {
  RespUnderTest resp(kOneRule);
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 15 0 60"), "-ERR Cell error: Zero rates are not supported");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 15 30 0"), "-ERR Cell error: Zero rates are not supported");
  EXPECT_EQ(resp.Ask("CL.THROTTLE k 15 30"),
            "-ERR wrong number of arguments for 'cl.throttle' command");
  EXPECT_THAT(resp.Ask("CL.THROTTLE k x 30 60"), StartsWith("-ERR max_burst: \"x\""));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k -1 30 60"), StartsWith("-ERR max_burst: \"-1\""));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 1 1.5 60"), StartsWith("-ERR count: \"1.5\""));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 1 1 -60"), StartsWith("-ERR period: \"-60\""));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 1 1 60 y"), StartsWith("-ERR quantity: \"y\""));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 9223372036854775807 1 1"), StartsWith("-ERR max_burst: "));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 1 1 1 -9223372036854775808"), StartsWith("-ERR quantity: "));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 1 9223372036854775808 1"), StartsWith("-ERR count: "));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 1 1 100000000"), StartsWith("-ERR period: "));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 1 100000001 1"), StartsWith("-ERR count: "));
  EXPECT_THAT(resp.Ask("CL.THROTTLE k 999999999999998 1 1"), StartsWith("-ERR burst: "));
}

TEST(Throttle, SaysWhatThrottlecrabSaysInItsOrder) {
  RespUnderTest resp(kOneRule);
  EXPECT_EQ(resp.Ask("THROTTLE k 10 100 60"), "[1, 10, 9, 1, 0]");
  for (int i = 0; i < 9; ++i) resp.Ask("THROTTLE k 10 100 60");
  EXPECT_EQ(resp.Ask("THROTTLE k 10 100 60"), "[0, 10, 0, 6, 1]");
  EXPECT_EQ(resp.Ask("THROTTLE k 10 100 60 0"), "[0, 10, 0, 6, 1]");
  EXPECT_EQ(resp.Ask("THROTTLE fresh 10 100 60 0"), "[1, 10, 10, 0, 0]");
  EXPECT_EQ(resp.Ask("THROTTLE fresh 10 100 60 11"), "[0, 10, 10, 0, -1]");
  for (const char* bad : {"0 1 1", "1 0 1", "1 1 0", "1 1 1 -1", "x 1 1"}) {
    EXPECT_THAT(resp.Ask("THROTTLE k " + std::string(bad)), StartsWith("-ERR ")) << bad;
  }
}

// redis-cell in its own terms: nanoseconds, one stored instant for each key, no bounds.
class RedisCell {
 public:
  struct Call {
    std::int64_t max_burst;
    std::int64_t count;
    std::int64_t period;
    std::int64_t quantity;
  };

  std::string Throttle(const std::string& key, const Call& call, std::int64_t now) {
    const auto interval = static_cast<std::int64_t>(static_cast<double>(call.period) * 1e9 /
                                                    static_cast<double>(call.count));
    const std::int64_t limit = call.max_burst + 1;
    const std::int64_t tolerance = interval * limit;
    const auto stored = arrivals_.find(key);
    const std::int64_t arrival = stored == arrivals_.end() ? now : stored->second;
    const std::int64_t increment = interval * call.quantity;
    const std::int64_t next = (now > arrival ? now : arrival) + increment;
    const std::int64_t early = next - tolerance - now;
    const bool limited = early > 0;
    std::int64_t time_to_live = 0;
    std::int64_t retry_after = -1;
    if (limited) {
      if (increment <= tolerance) retry_after = Seconds(early);
      time_to_live = arrival - now;
    } else {
      time_to_live = next - now;
      arrivals_[key] = next;
    }
    const std::int64_t left = tolerance - time_to_live;
    const std::int64_t remaining = left > -interval ? (left / 1000) / (interval / 1000) : 0;
    return "[" + std::to_string(limited ? 1 : 0) + ", " + std::to_string(limit) + ", " +
           std::to_string(remaining) + ", " + std::to_string(retry_after) + ", " +
           std::to_string(Seconds(time_to_live)) + "]";
  }

  // The key lives until then, and is as good as gone from then on.
  void Expire(std::int64_t now) {
    std::erase_if(arrivals_, [now](const auto& entry) { return entry.second <= now; });
  }

 private:
  static std::int64_t Seconds(std::int64_t nanoseconds) {
    const std::int64_t whole = nanoseconds / 1'000'000'000;
    const std::int64_t milliseconds = nanoseconds % 1'000'000'000 / 1'000'000;
    return milliseconds > 0 ? whole + 1 : whole;
  }

  std::map<std::string, std::int64_t> arrivals_;
};

std::uint64_t Seed() {
  const char* const given = std::getenv("WEIR_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

class RandomCalls {
 public:
  explicit RandomCalls(std::uint64_t seed) : random_(seed) {}

  std::int64_t Upto(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random_);
  }

  // The period is a whole number of microseconds for each of the count.
  RedisCell::Call Rate() {
    while (true) {
      const std::int64_t period = 1 + Upto(Upto(1) == 0 ? 10 : 3'600);
      const std::int64_t count = 1 + Upto(Upto(1) == 0 ? 10 : 2'000);
      if (period * 1'000'000 % count != 0) continue;
      return {.max_burst = Upto(Upto(1) == 0 ? 3 : 100),
              .count = count,
              .period = period,
              .quantity = 1};
    }
  }

  std::int64_t Quantity(std::int64_t max_burst) {
    switch (Upto(5)) {
      case 0:
        return 0;
      case 1:
        return Upto(max_burst + 3);
      default:
        return 1;
    }
  }

  // Up to about as long as the bucket takes to fill; often none, often not a whole microsecond.
  Duration Pause(const RedisCell::Call& rate) {
    const std::int64_t interval = rate.period * 1'000'000'000 / rate.count;
    switch (Upto(3)) {
      case 0:
        return Duration(0);
      case 1:
        return Duration(Upto(interval));
      case 2:
        return Duration(Upto(2'000'000));
      default:
        return Duration(Upto(interval * (rate.max_burst + 2)));
    }
  }

 private:
  std::mt19937_64 random_;
};

std::string Text(const std::string& key, const RedisCell::Call& call) {
  return "CL.THROTTLE " + key + " " + std::to_string(call.max_burst) + " " +
         std::to_string(call.count) + " " + std::to_string(call.period) + " " +
         std::to_string(call.quantity);
}

void Compare(RandomCalls& random, int calls, bool rate_changes, std::uint64_t seed) {
  RespUnderTest resp(kOneRule);
  RedisCell model;
  RedisCell::Call rate = random.Rate();
  // A key that has used more than an hour beyond what another rate allows is pulled back to that.
  while (rate_changes && (rate.max_burst + 1) * rate.period / rate.count >= 3'600) {
    rate = random.Rate();
  }
  for (int i = 0; i < calls; ++i) {
    // Another rate of the same kind: what was used is read in its way.
    if (rate_changes && random.Upto(9) == 0) {
      rate.max_burst = random.Upto(20);
      rate.period = rate.count * (1 + random.Upto(3));
    }
    RedisCell::Call call = rate;
    call.quantity = random.Quantity(rate.max_burst);
    const std::string key(1, static_cast<char>('a' + random.Upto(1)));
    const std::int64_t now = resp.exchange.clock.Read().wall.time_since_epoch().count();
    model.Expire(now);
    ASSERT_EQ(resp.Ask(Text(key, call)), model.Throttle(key, call, now))
        << Text(key, call) << ", call " << i << ", WEIR_SEED=" << seed;
    resp.exchange.clock.Advance(random.Pause(rate));
  }
}

TEST(ClThrottle, AgreesWithAModelOfRedisCellOnRandomCalls) {
  const std::uint64_t seed = Seed();
  RandomCalls random(seed);
  for (int run = 0; run < 300 && !testing::Test::HasFailure(); ++run) {
    Compare(random, 60, /*rate_changes=*/false, seed);
  }
}

TEST(ClThrottle, AgreesWithAModelOfRedisCellWhenTheRateOfAKeyChanges) {
  const std::uint64_t seed = Seed();
  RandomCalls random(seed);
  for (int run = 0; run < 100 && !testing::Test::HasFailure(); ++run) {
    Compare(random, 60, /*rate_changes=*/true, seed);
  }
}

}  // namespace
}  // namespace weir
