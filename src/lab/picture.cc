// Pictures for documents: SVG that needs no font, script or file from elsewhere, on a ground of its
// own so that it is readable wherever it is put, and the same bytes wherever it is drawn.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "lab/plot_drawing.h"
#include "lab/report.h"
#include "lab/svg_drawing.h"

namespace weir::lab {
namespace {

constexpr double kTextSize = 12;
constexpr double kTitleSize = 15;
constexpr double kPanelTitleSize = 13;
constexpr double kEdge = 18;    // Around everything.
constexpr double kSwatch = 14;  // Of a legend.
constexpr double kLegendLine = 18;
constexpr double kLegendGap = 16;

// What is written above plots. Each gives where the next begins.
class Heading {
 public:
  Heading(SvgDrawing& out, double width) : out_(out), right_(width - kEdge) {}

  double Title(double top, std::string_view title, double size) {
    if (title.empty()) return top;
    out_.Text(left_, top + size, FittingText(title, right_ - left_, size * 1.06),
              {.size = size, .bold = true});
    return top + size + 8;
  }
  double Note(double top, std::string_view note) {
    if (note.empty()) return top;
    out_.Text(left_, top + kTextSize, FittingText(note, right_ - left_, kTextSize),
              {.color = kFaint});
    return top + kTextSize + 6;
  }
  double Legend(double top, const Plot& plot) {
    double x = left_;
    double line = top;
    for (std::size_t i = 0; i < plot.series.size(); ++i) {
      const Series& series = plot.series[i];
      if (series.name.empty()) continue;
      const std::string name = FittingText(series.name, right_ - left_ - 24, kTextSize);
      const double width = kSwatch + 6 + TextWidth(name, kTextSize);
      if (line == top || x + width > right_) {
        x = left_;
        line += kLegendLine;
      }
      const bool is_line =
          series.style == Series::Style::kLine || series.style == Series::Style::kSteps;
      const double half = is_line ? 1.5 : 5;
      const double middle = line - 4;
      out_.Rectangle(
          {.left = x, .top = middle - half, .right = x + kSwatch, .bottom = middle + half},
          SeriesColor(plot, i));
      out_.Text(x + kSwatch + 6, line, name, {.size = kTextSize, .color = kFaint});
      x += width + kLegendGap;
    }
    return line == top ? top : line + 8;
  }

 private:
  SvgDrawing& out_;
  const double left_ = kEdge;
  const double right_;
};

bool HaveSameSeries(const Plot& a, const Plot& b) {
  return std::ranges::equal(a.series, b.series, [](const Series& one, const Series& other) {
    return one.name == other.name && one.style == other.style && one.tone == other.tone;
  });
}

}  // namespace

std::string PlotSvg(const Plot& plot, const PictureOptions& options) {
  SvgDrawing out;
  const double width = options.width;
  Heading heading(out, width);
  double top = heading.Title(kEdge, plot.title, kTitleSize);
  top = heading.Note(top, plot.note);
  top = heading.Legend(top, plot);
  const Box place{.left = kEdge,
                  .top = top,
                  .right = width - kEdge,
                  .bottom = static_cast<double>(options.height) - kEdge / 2};
  DrawPlot(out, plot, place, {.values = ValueRange(plot)});
  return out.Picture(options.width, options.height, plot.title);
}

std::string PanelsSvg(const Panels& panels, const PictureOptions& options) {
  SvgDrawing out;
  const double width = options.width;
  Heading heading(out, width);
  double top = heading.Title(kEdge, panels.title, kTitleSize);
  top = heading.Note(top, panels.note);
  // What all have in common is told once for all.
  const bool one_legend = std::ranges::all_of(
      panels.plots, [&](const Plot& plot) { return HaveSameSeries(plot, panels.plots.front()); });
  if (one_legend && !panels.plots.empty()) top = heading.Legend(top, panels.plots.front());
  double numbers_width = 0;
  for (const Plot& plot : panels.plots) {
    numbers_width =
        std::max(numbers_width, NumbersWidth(plot, ValueRange(plot, panels.plots), options.height));
  }
  for (std::size_t i = 0; i < panels.plots.size(); ++i) {
    const Plot& plot = panels.plots[i];
    const bool is_last = i + 1 == panels.plots.size();
    const PlotParts parts{
        .values = ValueRange(plot, panels.plots),
        .numbers_width = numbers_width,
        .x_label = is_last || panels.plots[i + 1].x_axis.label != plot.x_axis.label,
        .y_label = i == 0 || panels.plots[i - 1].y_axis.label != plot.y_axis.label};
    // As much for the plot itself in each of them.
    const double labels = (parts.x_label ? kLegendLine : 0) + (parts.y_label ? kLegendLine : 0);
    const double bottom = top + options.height + labels;
    top = heading.Title(top + 8, plot.title, kPanelTitleSize);
    top = heading.Note(top, plot.note);
    if (!one_legend) top = heading.Legend(top, plot);
    DrawPlot(out, plot, {.left = kEdge, .top = top, .right = width - kEdge, .bottom = bottom},
             parts);
    top = bottom;
  }
  return out.Picture(options.width, static_cast<int>(std::ceil(top + kEdge / 2)), panels.title);
}

}  // namespace weir::lab
