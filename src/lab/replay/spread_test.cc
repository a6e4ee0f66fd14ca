#include "lab/replay/spread.h"

#include <gtest/gtest.h>

namespace weir::lab {
namespace {

// Hands out so many at a time.
class Records final : public LogReader {
 public:
  Records(std::vector<std::int64_t> seconds, std::size_t at_once) : at_once_(at_once) {
    for (const std::int64_t second : seconds) {
      records_.push_back({.time = WallTime(std::chrono::seconds(second)), .ip = "192.0.2.1"});
    }
  }
  std::span<const LogRecord> Next() override {
    const std::span<const LogRecord> rest = std::span<const LogRecord>(records_).subspan(told_);
    const std::span<const LogRecord> next = rest.first(std::min(rest.size(), at_once_));
    told_ += next.size();
    return next;
  }
  const std::vector<LogCounts>& counts() const override { return counts_; }

 private:
  const std::size_t at_once_;
  std::vector<LogRecord> records_;
  std::size_t told_ = 0;
  std::vector<LogCounts> counts_;
};

std::vector<double> SecondsOf(Spread& spread) {
  std::vector<double> seconds;
  for (auto batch = spread.Next(); !batch.empty(); batch = spread.Next()) {
    for (const LogRecord& record : batch) {
      EXPECT_EQ(record.ip, "192.0.2.1");
      seconds.push_back(std::chrono::duration<double>(record.time.time_since_epoch()).count());
    }
  }
  return seconds;
}

TEST(Spread, PutsRequestsOfASecondEvenlyOverIt) {
  for (const std::size_t at_once : {1U, 2U, 3U, 100U}) {
    Records records({1, 1, 2, 3, 3, 3, 3}, at_once);
    Spread spread(records);
    EXPECT_EQ(SecondsOf(spread), (std::vector<double>{1, 1.5, 2, 3, 3.25, 3.5, 3.75}));
    EXPECT_EQ(spread.as_they_are(), 0U);
  }
}

// A log with days only has all of a day in one second.
TEST(Spread, HoldsNoMoreThanItMay) {
  for (const std::size_t at_once : {1U, 3U, 7U}) {
    std::vector<std::int64_t> seconds(20, 5);
    seconds.push_back(6);
    seconds.push_back(6);
    Records records(seconds, at_once);
    Spread spread(records, 4);
    std::vector<double> expected(20, 5);
    expected.push_back(6);
    expected.push_back(6.5);
    EXPECT_EQ(SecondsOf(spread), expected) << at_once;
    EXPECT_EQ(spread.as_they_are(), 1U);
  }
}

}  // namespace
}  // namespace weir::lab
