#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/report.h"
#include "lab/reports_under_test.h"
#include "lab/shown_text.h"

namespace weir::lab {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReportText, SaysWhatIsMissingBeforeAnythingElse) {
  const std::string text = ReportText({.title = "Replay",
                                       .subtitle = "access.log",
                                       .warnings = {"12 lines could not be read."},
                                       .facts = {{"requests", "7"}, {"denied", "1.2 %"}}});
  EXPECT_EQ(text,
            "Replay\n"
            "access.log\n"
            "\n"
            "WARNING: 12 lines could not be read.\n"
            "\n"
            "  requests  7\n"
            "  denied    1.2 %\n");
}

TEST(ReportText, AlignsTablesByWhatIsSeen) {
  Table table{.title = "Keys",
              .note = "All of them.",
              .columns = {{.label = "key", .is_text = true},
                          {.label = "share", .unit = Unit::kPercent},
                          {.label = "over time"}}};
  table.rows = {{"日本", 0.5, Cell(std::vector<double>{0, 7})},
                {"abc", 0.0012, Cell(std::vector<double>{7, 0})},
                {"none"}};
  EXPECT_EQ(ReportText({.title = "T", .sections = {table}}),
            "T\n"
            "\n"
            "Keys\n"
            "  key    share  over time\n"
            "  日本    50 %  ▁█\n"
            "  abc   0.12 %  █▁\n"
            "  none\n"
            "  All of them.\n");
}

TEST(ReportText, ShortensTextsRatherThanNumbers) {
  Table table{.columns = {{.label = "key", .is_text = true}, {.label = "requests"}}};
  table.rows = {{std::string(300, 'k'), 1'234'567.0}};
  const std::string text = ReportText({.title = "T", .sections = {table}}, {.width = 60});
  EXPECT_THAT(text, HasSubstr("kkk…  1,234,567\n"));
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(DisplayWidth(text.substr(begin, end - begin)), 60U);
    begin = end + 1;
  }
}

TEST(ReportText, DrawsTheSeriesOfAPlotOnOneScale) {
  const Plot plot{.title = "Admitted",
                  .x_axis = {.unit = Unit::kSeconds},
                  .y_axis = {.label = "per second"},
                  .x = {0, 1, 2},
                  .series = {{.name = "arrivals", .values = {0, 70, 70}},
                             {.name = "out", .values = {0, 30, std::nan("")}}},
                  .lines = {{100, "limit", Tone::kBad}},
                  .bands = {{1, 2, "store down", Tone::kBad}},
                  .marks = {{1, 70, "worst", Tone::kBad}}};
  EXPECT_EQ(ReportText({.title = "T", .sections = {plot}}),
            "T\n"
            "\n"
            "Admitted (per second, 0 s to 2 s)\n"
            "  arrivals  ▁██  0 to 70\n"
            "  out       ▁▄   0 to 30\n"
            "  ─ limit: 100\n"
            "  ● worst: 70 at 1 s\n"
            "  ▒ store down: 1 s to 2 s\n");
}

TEST(ReportText, LeavesListingsAsTheyAre) {
  const std::string listing = "rules:\n  - name: " + std::string(200, 'x') + "\n";
  EXPECT_THAT(ReportText({.title = "T", .sections = {Listing{"Policy", listing}}}),
              HasSubstr("Policy\n" + listing));
}

TEST(ReportText, HasColorsOnlyIfAsked) {
  const Report report = CompareReport();
  EXPECT_THAT(ReportText(report), Not(HasSubstr("\x1b")));
  const std::string colored = ReportText(report, {.color = true});
  EXPECT_THAT(colored, HasSubstr("\x1b[31m1.99×\x1b[0m"));
  // Without its colours it is the same text.
  std::string plain;
  for (std::size_t i = 0; i < colored.size(); ++i) {
    if (colored[i] == '\x1b') {
      i = colored.find('m', i);
    } else {
      plain += colored[i];
    }
  }
  EXPECT_EQ(plain, ReportText(report));
}

TEST(ReportText, HoldsNothingThatATerminalWouldObey) {
  const std::string text = ReportText(ReplayReport());
  for (const char c : text) EXPECT_TRUE(c == '\n' || c == '\t' || c < 0 || c >= ' ');
  EXPECT_EQ(ShownText(text, Lines::kMany), text);
}

}  // namespace
}  // namespace weir::lab
