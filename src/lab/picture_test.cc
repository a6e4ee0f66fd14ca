#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/report.h"
#include "lab/reports_under_test.h"
#include "lab/shown_text.h"

namespace weir::lab {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Plot SmallPlot() {
  return {.title = "A & B",
          .x_axis = {.label = "time", .unit = Unit::kSeconds},
          .y_axis = {.label = "requests"},
          .x = {0, 1, 2, 3},
          .series = {{.name = "in", .values = {1, 2, 3, 4}},
                     {.name = "out", .values = {1, 1, 2, 2}, .style = Series::Style::kSteps}},
          .lines = {{3, "limit", Tone::kBad}}};
}

TEST(PlotSvg, DrawsEverySeriesLineBandAndMark) {
  Plot plot = SmallPlot();
  plot.bands = {{1, 2, "store down", Tone::kBad}};
  plot.marks = {{3, 4, "worst", Tone::kBad}};
  const std::string svg = PlotSvg(plot);
  EXPECT_THAT(svg, HasSubstr("<title>A &amp; B</title>"));
  EXPECT_EQ(CountOf(svg, "<path"), 2U);
  EXPECT_EQ(CountOf(svg, "<circle"), 1U);
  EXPECT_EQ(CountOf(svg, "stroke-dasharray"), 1U);
  for (const char* text :
       {">limit<", ">store down<", ">worst<", ">in<", ">out<", ">time<", ">1.0 s<", ">requests<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(PlotSvg, DrawsTheSameEverywhere) {
  EXPECT_EQ(PlotSvg(SmallPlot()), PlotSvg(SmallPlot()));
  // A known one, so that a machine that rounds otherwise is noticed.
  EXPECT_THAT(PlotSvg(SmallPlot()), HasSubstr("d=\"M34.2 217L301.4 179.1L568.7 141.1L836 103.1\""))
      << PlotSvg(SmallPlot());
}

TEST(PlotSvg, KeepsAllTextInside) {
  Plot plot = SmallPlot();
  const std::string label = "a label of some length that would run out";
  plot.marks = {{0, 4, label}, {3, 4, label}, {3, 0, label}, {2.9, 3.9, label}};
  plot.bands = {{0, 0.01, label}, {2.99, 3, label}};
  plot.lines = {{0, label}, {4, label}};
  const std::string svg = PlotSvg(plot, {.width = 500, .height = 260});
  const std::regex text(
      R"re(<text x="([0-9.]+)" y="([0-9.]+)"[^>]*?font-size="([0-9.]+)"(?: text-anchor="(\w+)")?[^>]*>([^<]*)<)re");
  int seen = 0;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), text); it != std::sregex_iterator();
       ++it) {
    const double x = std::stod((*it)[1]);
    const double y = std::stod((*it)[2]);
    const double width =
        0.56 * std::stod((*it)[3]) * static_cast<double>(DisplayWidth((*it)[5].str()));
    const std::string anchor = (*it)[4];
    const double left = anchor == "end" ? x - width : anchor == "middle" ? x - width / 2 : x;
    EXPECT_GE(left, -1) << (*it)[0];
    EXPECT_LE(left + width, 501) << (*it)[0];
    EXPECT_GE(y, 8) << (*it)[0];
    EXPECT_LE(y, 260) << (*it)[0];
    ++seen;
  }
  EXPECT_GT(seen, 12);
}

TEST(PlotSvg, LeavesAGapWhereThereIsNoNumber) {
  Plot plot = SmallPlot();
  plot.series = {{.name = "in", .values = {1, std::nan(""), 3, 4}}};
  const std::string svg = PlotSvg(plot);
  const std::size_t path = svg.find("<path");
  EXPECT_EQ(CountOf(svg.substr(path, svg.find("/>", path) - path), "M"), 2U);
}

TEST(PlotSvg, StaysSmallWhenThereAreManyPoints) {
  Plot plot{.x = Range(200'000, 0, 1), .series = {{.name = "noise", .values = {}}}};
  Noise noise;
  for (std::size_t i = 0; i < plot.x.size(); ++i) plot.series[0].values.push_back(noise.Next());
  EXPECT_LT(PlotSvg(plot).size(), 120'000U);
}

TEST(PlotSvg, HarmsNobodyWithHostileText) {
  Plot plot = SmallPlot();
  plot.title = plot.note = plot.x_axis.label = plot.y_axis.label = HostileText();
  plot.series[0].name = HostileText();
  plot.lines = {{3, HostileText()}};
  plot.marks = {{1, 2, HostileText()}};
  const std::string svg = PlotSvg(plot);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("<img")));
  EXPECT_EQ(ShownText(svg, Lines::kMany), svg);  // Nothing that XML does not allow.
}

TEST(PlotSvg, BearsPlotsWithNothingInThem) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {0},
                                            {nan},
                                            {nan, nan},
                                            {infinity, 1, -infinity},
                                            {1e300, 1e-300, 5}}) {
    for (const auto style : {Series::Style::kLine, Series::Style::kSteps, Series::Style::kArea,
                             Series::Style::kBars}) {
      for (const bool logarithmic : {false, true}) {
        Plot plot{.x_axis = {.logarithmic = logarithmic},
                  .y_axis = {.logarithmic = logarithmic},
                  .x = Range(values.size(), 0, 1),
                  .series = {{.name = "s", .values = values, .style = style}},
                  .lines = {{nan, "line"}, {infinity, "line"}},
                  .bands = {{nan, infinity, "band"}},
                  .marks = {{nan, 1, "mark"}, {1, -infinity, "mark"}}};
        const std::string svg = PlotSvg(plot);
        EXPECT_THAT(svg, Not(HasSubstr("\"nan")));
        EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
        EXPECT_THAT(svg, Not(HasSubstr(" nan")));
        EXPECT_THAT(svg, Not(HasSubstr("inf ")));
        EXPECT_TRUE(svg.ends_with("</svg>\n"));
      }
    }
  }
}

TEST(PanelsSvg, DrawsAllOnOneScaleWithOneLegend) {
  Panels panels{.title = "Side by side", .plots = {SmallPlot(), SmallPlot()}};
  panels.plots[1].series[0].values = {0, 0, 0, 40};
  const std::string svg = PanelsSvg(panels);
  EXPECT_EQ(CountOf(svg, ">in<"), 1U);
  EXPECT_EQ(CountOf(svg, ">40<"), 2U);
  EXPECT_EQ(CountOf(svg, ">time<"), 1U);
  EXPECT_EQ(CountOf(svg, "<path"), 4U);
  EXPECT_FALSE(PanelsSvg({}).empty());
}

TEST(PanelsSvg, LetsPlotsBelowEachOtherBeginAtTheSamePlace) {
  Plot wide = SmallPlot();
  wide.y_axis = {.label = "bytes", .unit = Unit::kBytes};
  for (double& value : wide.series[0].values) value *= 1e6;
  const std::string svg = PanelsSvg({.plots = {SmallPlot(), wide}});
  // The curve of the first series of each.
  const std::regex begins("<path d=\"M([0-9.]+) ");
  std::set<std::string> places;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), begins); it != std::sregex_iterator();
       ++it) {
    places.insert((*it)[1]);
  }
  EXPECT_EQ(places.size(), 1U) << svg;
}

}  // namespace
}  // namespace weir::lab
