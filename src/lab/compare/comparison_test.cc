#include "lab/compare/comparison.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace weir::lab {
namespace {

using ::testing::HasSubstr;

Comparison Made(const char* text, Shape shape) {
  const Limit limit = Limit::Parse(text).value();
  return Compare(
      limit,
      MakeTraffic({.shape = shape, .count = limit.spec().count, .period = limit.spec().period})
          .value());
}

const Comparison& Boundary() {
  static const Comparison comparison = Made("100/s burst 50", Shape::kBoundary);
  return comparison;
}

TEST(Comparison, HasEveryAlgorithmOnTheSameRequests) {
  const Comparison& comparison = Boundary();
  std::vector<std::string> names;
  for (const Rival& rival : comparison.rivals) {
    names.push_back(rival.contender.name);
    EXPECT_EQ(rival.trial.admitted + rival.trial.denied, comparison.requests);
    EXPECT_EQ(rival.passed.size(), comparison.timeline.bins);
    EXPECT_EQ(rival.trailing.size(), comparison.timeline.bins);
    EXPECT_EQ(*std::ranges::max_element(rival.trailing),
              static_cast<double>(rival.trial.worst_window.cost));
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"token_bucket", "leaky_bucket queue", "fixed_window",
                                      "sliding_window", "sliding_window strict", "sliding_log"}));
  EXPECT_EQ(comparison.requests, 600);
}

// What waits in a queue goes ahead after the last request has come.
TEST(Comparison, IsDrawnUntilTheLastRequestHasGoneAhead) {
  const Limit limit = Limit::Parse("1/s burst 30").value();
  Traffic traffic{.name = "one volley", .length = std::chrono::seconds(1)};
  traffic.arrivals.assign(31, {.at = Duration(0)});
  const Comparison comparison = Compare(limit, std::move(traffic));
  EXPECT_GE(comparison.timeline.bin * static_cast<std::int64_t>(comparison.timeline.bins),
            std::chrono::seconds(30));
  const Rival& queue = comparison.rivals[1];
  ASSERT_TRUE(queue.contender.limit.spec().queue);
  EXPECT_EQ(queue.trial.max_delay, std::chrono::seconds(30));
  double sum = 0;
  for (const double part : queue.passed) sum += part;
  EXPECT_EQ(sum, 31);
  EXPECT_EQ(*std::ranges::max_element(queue.passed), 1);
}

TEST(ComparisonReport, MarksTheWorstWindowOfEveryAlgorithm) {
  const Panels panels = PictureOf(Boundary());
  ASSERT_EQ(panels.plots.size(), 6U);
  const Plot& fixed = panels.plots[2];
  EXPECT_EQ(fixed.title, "fixed_window");
  ASSERT_EQ(fixed.marks.size(), 1U);
  EXPECT_EQ(fixed.marks[0].y, 200);
  EXPECT_EQ(fixed.marks[0].tone, Tone::kBad);
  EXPECT_THAT(fixed.marks[0].label, HasSubstr("200 in 1 s: 2"));
  ASSERT_EQ(fixed.bands.size(), 1U);
  EXPECT_NEAR(fixed.bands[0].to - fixed.bands[0].from, 1, 1e-9);
  EXPECT_EQ(fixed.lines.size(), 2U);            // Limit and promise,
  EXPECT_EQ(panels.plots[5].lines.size(), 1U);  // which are the same for a log.
  for (const Plot& plot : panels.plots) {
    EXPECT_LE(plot.x.size(), 600U);
    EXPECT_EQ(plot.x, fixed.x);
    for (const Series& series : plot.series) EXPECT_EQ(series.values.size(), plot.x.size());
  }
}

TEST(ComparisonReport, MarksTheWorstBurstOfEveryAlgorithm) {
  const Report report = ReportOf(Boundary());
  const auto section = std::ranges::find_if(
      report.sections, [](const Section& one) { return std::holds_alternative<Panels>(one); });
  ASSERT_NE(section, report.sections.end());
  const Panels& panels = std::get<Panels>(*section);
  ASSERT_EQ(panels.plots.size(), 6U);
  EXPECT_EQ(panels.plots[1].marks.at(0).label, "1 at once");  // A queue.
  EXPECT_EQ(panels.plots[2].marks.at(0).label, "200 in 19.9 ms");
  EXPECT_EQ(panels.plots[2].marks.at(0).tone, Tone::kBad);
}

TEST(ComparisonReport, HasARowForEveryAlgorithmAndACellForEveryColumn) {
  const Report report = ReportOf(Boundary());
  int tables = 0;
  for (const Section& section : report.sections) {
    const Table* table = std::get_if<Table>(&section);
    if (table == nullptr) continue;
    ++tables;
    EXPECT_EQ(table->rows.size(), 6U);
    for (const auto& row : table->rows) EXPECT_EQ(row.size(), table->columns.size());
    for (const Table::Column& column : table->columns) EXPECT_NE(column.help, "");
  }
  EXPECT_EQ(tables, 3);
  const std::string text = ReportText(report);
  EXPECT_THAT(text, HasSubstr("100/s burst 50 by every algorithm"));
  EXPECT_THAT(text, HasSubstr("all kept"));
  EXPECT_THAT(text, HasSubstr("concurrency: it limits how many are under way at once"));
}

TEST(ComparisonReport, SaysThatAPromiseWasBroken) {
  Comparison comparison = Boundary();
  comparison.rivals[2].trial.is_kept = false;
  EXPECT_THAT(ReportText(ReportOf(comparison)), HasSubstr("BROKEN by fixed_window"));
}

TEST(ComparisonReport, SaysWhatIsMissing) {
  Comparison comparison = Boundary();
  comparison.traffic.warnings = {"Half of it is gone."};
  EXPECT_THAT(ReportText(ReportOf(comparison)), HasSubstr("Half of it is gone."));
  EXPECT_THAT(JsonOf(comparison), HasSubstr("Half of it is gone."));
}

TEST(ComparisonJson, HasAllThatWasMeasured) {
  const auto json = nlohmann::json::parse(JsonOf(Boundary()));
  EXPECT_EQ(json["limit"]["count"], 100);
  EXPECT_EQ(json["limit"]["burst"], 50);
  EXPECT_EQ(json["traffic"]["requests"], 600);
  ASSERT_EQ(json["algorithms"].size(), 6U);
  const auto& fixed = json["algorithms"][2];
  EXPECT_EQ(fixed["name"], "fixed_window");
  EXPECT_EQ(fixed["worst_window"]["cost"], 200);
  EXPECT_EQ(fixed["worst_window"]["of_limit"], 2.0);
  EXPECT_EQ(fixed["promise"]["in_window"], 200);
  EXPECT_EQ(fixed["promise"]["kept"], true);
  EXPECT_EQ(fixed["error"]["too_low"], 1.0);
  EXPECT_TRUE(json["algorithms"][0]["error"].is_null());
  EXPECT_EQ(json["algorithms"][4]["strict"], true);
  EXPECT_EQ(json["left_out"][0]["name"], "concurrency");
}

}  // namespace
}  // namespace weir::lab
