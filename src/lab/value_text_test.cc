#include <cmath>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lab/report.h"
#include "lab/reports_under_test.h"

namespace weir::lab {
namespace {

// The page has its own way of writing numbers, and is held to the same file.
TEST(WriteValue, WritesWhatThePageWrites) {
  const std::map<std::string, Unit> units = {
      {"count", Unit::kCount},  {"rate", Unit::kRate},   {"seconds", Unit::kSeconds},
      {"time", Unit::kTime},    {"bytes", Unit::kBytes}, {"percent", Unit::kPercent},
      {"factor", Unit::kFactor}};
  std::ifstream file(WEIR_VALUES);
  ASSERT_TRUE(file) << WEIR_VALUES;
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 50U);
  for (const auto& each : cases) {
    const double value = each[1].is_null() ? std::nan("") : each[1].get<double>();
    EXPECT_EQ(WriteValue(value, units.at(each[0])), each[2].get<std::string>())
        << each[0] << " " << value;
  }
}

TEST(WriteValue, WritesWhatHasNoEnd) {
  EXPECT_EQ(WriteValue(kInfinity, Unit::kSeconds), "∞");
  EXPECT_EQ(WriteValue(-kInfinity, Unit::kCount), "-∞");
}

TEST(WriteValue, NeverSaysAllOfWhatIsNotAll) {
  for (double missing = 1e-3; missing > 1e-15; missing /= 3) {
    EXPECT_NE(WriteValue(1 - missing, Unit::kPercent), "100 %") << missing;
  }
}

TEST(WriteValue, WritesSomethingForAnyNumber) {
  for (const Unit unit : {Unit::kCount, Unit::kRate, Unit::kSeconds, Unit::kTime, Unit::kBytes,
                          Unit::kPercent, Unit::kFactor}) {
    for (double value = 1e-320; value < 1e308; value *= 7.3) {
      EXPECT_FALSE(WriteValue(value, unit).empty());
      EXPECT_LT(WriteValue(-value, unit).size(), 40U) << value;
    }
  }
}

}  // namespace
}  // namespace weir::lab
