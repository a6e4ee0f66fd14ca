#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lab/page_frame.h"
#include "lab/report.h"
#include "lab/report_json.h"
#include "lab/reports_under_test.h"

namespace weir::lab {
namespace {

using testing::HasSubstr;
using testing::Not;

// What a browser takes for the report: everything up to the first end of a script element.
std::string DataIn(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="report">)";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script", from) - from);
}

TEST(PageFrame, HasBothPlacesOnceAndInOrder) {
  const std::string_view frame = PageFrame();
  const std::size_t title = frame.find("@WEIR_TITLE@");
  const std::size_t report = frame.find("@WEIR_REPORT@");
  ASSERT_NE(title, std::string_view::npos);
  ASSERT_NE(report, std::string_view::npos);
  EXPECT_LT(title, report);
  EXPECT_EQ(frame.rfind("@WEIR_TITLE@"), title);
  EXPECT_EQ(frame.rfind("@WEIR_REPORT@"), report);
  EXPECT_THAT(std::string(frame), HasSubstr("default-src 'none'"));
}

TEST(ReportPage, HoldsTheReportAsData) {
  const nlohmann::json data = nlohmann::json::parse(DataIn(ReportPage(CompareReport())));
  EXPECT_EQ(data["title"], "100 per second, by seven algorithms");
  EXPECT_EQ(data["facts"][2]["tone"], "bad");
  EXPECT_EQ(data["sections"][0]["kind"], "table");
  EXPECT_EQ(data["sections"][0]["rows"][0][1]["value"], 2000);
  EXPECT_EQ(data["sections"][1]["x_axis"]["unit"], "seconds");
  EXPECT_EQ(data["sections"][1]["bands"][0]["label"], "worst window");
  EXPECT_EQ(data["sections"][2]["plots"].size(), 7U);
}

TEST(ReportPage, LetsNothingOutOfItsData) {
  Report report = ReplayReport();
  report.title = HostileText();
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<!--\\x1b")));
  const std::string data = DataIn(page);
  EXPECT_EQ(data.find_first_of("<>&"), std::string::npos);
  const nlohmann::json parsed = nlohmann::json::parse(data);
  EXPECT_THAT(parsed["title"], HasSubstr("</script><script>alert(1)</script>"));
  // The frame is as it was around it.
  EXPECT_EQ(page.substr(page.size() - 100), PageFrame().substr(PageFrame().size() - 100));
}

TEST(ReportPage, IsNotConfusedByItsOwnMarks) {
  const std::string page = ReportPage({.title = "@WEIR_REPORT@", .subtitle = "@WEIR_TITLE@"});
  EXPECT_EQ(nlohmann::json::parse(DataIn(page))["title"], "@WEIR_REPORT@");
}

TEST(ReportJson, LeavesOutWhatNobodySees) {
  const Plot plot{.x_axis = {.unit = Unit::kTime},
                  .x = {1'772'323'200.123456, 1'772'323'201},
                  .series = {{.name = "s", .values = {1.0 / 3, 123'456'789}}}};
  const std::string json = ReportJson({.title = "T", .sections = {plot}});
  EXPECT_THAT(json, HasSubstr("[1772323200.123,1772323201]"));
  EXPECT_THAT(json, HasSubstr("[0.333333,123456789]"));
}

TEST(ReportJson, HasNullWhereThereIsNoNumber) {
  const Plot plot{
      .x = {0, 1, 2},
      .series = {{.name = "s", .values = {std::nan(""), std::numeric_limits<double>::infinity()}}}};
  EXPECT_THAT(ReportJson({.title = "T", .sections = {plot}}), HasSubstr("[null,null,null]"));
}

// For the test that opens them in a browser.
TEST(ReportPage, IsWrittenWhereABrowserFindsIt) {
  const char* asked = std::getenv("WEIR_PAGES");  // NOLINT(concurrency-mt-unsafe)
  const std::string folder = asked != nullptr ? asked : testing::TempDir();
  for (const auto& [name, report] :
       {std::pair{"sample-compare", CompareReport()}, std::pair{"sample-replay", ReplayReport()},
        std::pair{"sample-simulate", SimulateReport()}}) {
    std::ofstream file(folder + "/" + name + ".html", std::ios::binary);
    file << ReportPage(report);
    EXPECT_TRUE(file.flush()) << folder;
  }
}

}  // namespace
}  // namespace weir::lab
