#include "lab/plot_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "lab/label_places.h"

namespace weir::lab {
namespace {

constexpr double kSmall = 11;
constexpr double kTickRoom = 90;    // What a number on the x axis takes, with space.
constexpr double kTickHeight = 30;  // Between two on the y axis.
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool HasBars(const Plot& plot) {
  return std::ranges::any_of(
      plot.series, [](const Series& series) { return series.style == Series::Style::kBars; });
}

// Where what begins at each x ends; the last is as wide as the one before it.
double EndOf(const Plot& plot, std::size_t i) {
  const std::vector<double>& x = plot.x;
  if (i + 1 < x.size()) return x[i + 1];
  if (x.size() < 2) return plot.x_axis.logarithmic ? x[i] * 2 : x[i] + 1;
  const double before = x[i - 1];
  return plot.x_axis.logarithmic && before > 0 ? x[i] * (x[i] / before) : x[i] + (x[i] - before);
}

struct Extent {
  double low = kNan;
  double high = kNan;
  bool positive_only = false;

  void Include(double value) {
    if (!std::isfinite(value) || (positive_only && value <= 0)) return;
    if (!(low <= value)) low = value;
    if (!(high >= value)) high = value;
  }
};

AxisRange XRange(const Plot& plot) {
  Extent extent{.positive_only = plot.x_axis.logarithmic};
  for (const double x : plot.x) extent.Include(x);
  if (HasBars(plot) && !plot.x.empty()) extent.Include(EndOf(plot, plot.x.size() - 1));
  return {.low = extent.low, .high = extent.high};
}

void IncludeValues(const Plot& plot, Extent& extent) {
  for (const Series& series : plot.series) {
    for (const double value : series.values) extent.Include(value);
  }
  for (const Plot::Line& line : plot.lines) extent.Include(line.y);
  for (const Plot::Mark& mark : plot.marks) extent.Include(mark.y);
}

PlotAxis ValueAxis(const Plot& plot, AxisRange values, double tall) {
  return {values,
          {.unit = plot.y_axis.unit,
           .logarithmic = plot.y_axis.logarithmic,
           .ticks = std::max(2, static_cast<int>(tall / kTickHeight))}};
}

double WidestNumber(const PlotAxis& axis) {
  double widest = 0;
  for (const auto& tick : axis.ticks()) widest = std::max(widest, TextWidth(tick.text, kSmall));
  return widest;
}

class PlotDrawing {
 public:
  PlotDrawing(SvgDrawing& out, const Plot& plot, const Box& place)
      : out_(out), plot_(plot), place_(place), area_(place) {}

  void Draw(const PlotParts& parts) {
    DrawAxes(parts);
    labels_.emplace(Box{.left = area_.left,
                        .top = area_.top - 14,
                        .right = area_.right + 4,
                        .bottom = area_.bottom - 2},
                    kSmall);
    DrawBands();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) DrawSeries(i);
    for (const Plot::Line& line : plot_.lines) DrawLine(line);
    for (const Plot::Mark& mark : plot_.marks) {
      out_.Dot(X(mark.x), Y(mark.y), 4, ColorOf(mark.tone));
      labels_->Take(Around(X(mark.x), Y(mark.y), 4));
    }
    for (const Series& series : plot_.series) AvoidCurve(series);
    LabelBands();
    for (const Plot::Line& line : plot_.lines) LabelLine(line);
    for (const Plot::Mark& mark : plot_.marks) LabelMark(mark);
  }

 private:
  static Box Around(double x, double y, double radius) {
    return {.left = x - radius, .top = y - radius, .right = x + radius, .bottom = y + radius};
  }
  double X(double value) const {
    const double place = std::clamp(x_axis_->Place(value), 0.0, 1.0);
    return area_.left + place * (area_.right - area_.left);
  }
  double Y(double value) const {
    const double place = std::clamp(y_axis_->Place(value), 0.0, 1.0);
    return area_.bottom - place * (area_.bottom - area_.top);
  }

  void DrawAxes(const PlotParts& parts) {
    const bool has_label = parts.x_label && !plot_.x_axis.label.empty();
    const bool has_y_label = parts.y_label && !plot_.y_axis.label.empty();
    area_.top += has_y_label ? 24 : 8;
    area_.bottom -= has_label ? 36 : 20;
    const double tall = std::max(20.0, area_.bottom - area_.top);
    y_axis_.emplace(ValueAxis(plot_, parts.values, tall));
    area_.left += std::max(WidestNumber(*y_axis_), parts.numbers_width) + 10;
    area_.right -= 6;
    const double wide = std::max(20.0, area_.right - area_.left);
    x_axis_.emplace(XRange(plot_), PlotAxis::Options{.unit = plot_.x_axis.unit,
                                                     .logarithmic = plot_.x_axis.logarithmic,
                                                     .ticks = static_cast<int>(wide / kTickRoom)});
    for (const auto& tick : y_axis_->ticks()) {
      const double y = Y(tick.value);
      out_.Line({.left = area_.left, .top = y, .right = area_.right, .bottom = y},
                {.color = kGrid});
      out_.Text(area_.left - 8, y + 4, tick.text,
                {.size = kSmall, .color = kFaint, .anchor = "end"});
    }
    out_.Line(
        {.left = area_.left, .top = area_.bottom, .right = area_.right, .bottom = area_.bottom},
        {.color = kFaint});
    for (const auto& tick : x_axis_->ticks()) {
      const double x = X(tick.value);
      out_.Line({.left = x, .top = area_.bottom, .right = x, .bottom = area_.bottom + 4},
                {.color = kFaint});
      // The last does not run out of the picture.
      const double half = TextWidth(tick.text, kSmall) / 2;
      out_.Text(std::min(x, place_.right - half), area_.bottom + 17, tick.text,
                {.size = kSmall, .color = kFaint, .anchor = "middle"});
    }
    if (has_y_label) {
      out_.Text(place_.left, area_.top - 12,
                FittingText(plot_.y_axis.label, place_.right - place_.left, kSmall),
                {.size = kSmall, .color = kFaint});
    }
    std::string label = plot_.x_axis.label;
    if (plot_.x_axis.unit == Unit::kTime && !plot_.x.empty()) {
      label += (label.empty() ? "" : ", ") + std::string("UTC, from ") +
               WriteValue(x_axis_->low(), Unit::kTime);
    }
    if (has_label) {
      out_.Text(area_.right, area_.bottom + 33, FittingText(label, wide, kSmall),
                {.size = kSmall, .color = kFaint, .anchor = "end"});
    }
  }

  void DrawBands() {
    for (const Plot::Band& band : plot_.bands) {
      const double from = X(band.from);
      const double to = std::max(X(band.to), from + 1);
      out_.Rectangle({.left = from, .top = area_.top, .right = to, .bottom = area_.bottom},
                     ColorOf(band.tone), band.tone == Tone::kQuiet ? "0.22" : "0.14");
    }
  }

  void DrawSeries(std::size_t which) {
    const Series& series = plot_.series[which];
    const std::string_view color = SeriesColor(plot_, which);
    switch (series.style) {
      case Series::Style::kBars:
        return DrawBars(series, color);
      case Series::Style::kArea:
        return out_.Filled(Curve(series, true), color, "0.35");
      case Series::Style::kLine:
      case Series::Style::kSteps:
        return out_.Outline(Curve(series, false), {.color = color, .width = 1.8});
    }
  }

  // As one path, so that a thousand bars stay small.
  void DrawBars(const Series& series, std::string_view color) {
    PathData bars;
    const std::size_t count = std::min(plot_.x.size(), series.values.size());
    for (std::size_t i = 0; i < count; ++i) {
      const double value = series.values[i];
      if (!std::isfinite(value) || value == 0) continue;
      const double from = X(plot_.x[i]);
      const double to = X(EndOf(plot_, i));
      const double gap = to - from > 4 ? 1 : to - from > 2 ? 0.5 : 0;
      const double end = Y(value);
      const double base = Y(std::max(0.0, y_axis_->low()));
      bars.MoveTo(from, base);
      bars.LineTo(from, end);
      bars.LineTo(std::max(to - gap, from + 0.5), end);
      bars.LineTo(std::max(to - gap, from + 0.5), base);
      bars.Close();
    }
    out_.Filled(bars, color, "0.9");
  }

  void AvoidCurve(const Series& series) {
    const std::size_t count = std::min(plot_.x.size(), series.values.size());
    const bool is_line =
        series.style == Series::Style::kLine || series.style == Series::Style::kSteps;
    for (std::size_t i = 0; is_line && i < count; ++i) {
      if (std::isfinite(series.values[i])) labels_->Avoid(X(plot_.x[i]), Y(series.values[i]));
    }
  }

  // More than a few points in one column of pixels are its lowest and highest.
  PathData Curve(const Series& series, bool filled) const {
    PathData path;
    const double base = Y(std::max(0.0, y_axis_->low()));
    const std::size_t count = std::min(plot_.x.size(), series.values.size());
    const bool steps = series.style == Series::Style::kSteps;
    bool drawing = false;
    double last_x = 0;
    double last_y = 0;
    const auto finish = [&] {
      if (!drawing) return;
      if (filled) {
        path.LineTo(last_x, base);
        path.Close();
      }
      drawing = false;
    };
    const auto point = [&](double x, double y) {
      if (!drawing && filled) path.MoveTo(x, base);
      if (!drawing && !filled) path.MoveTo(x, y);
      if (drawing && steps && y != last_y) path.LineTo(x, last_y);
      if ((drawing || filled) && !(steps && drawing && y == last_y)) path.LineTo(x, y);
      drawing = true;
      last_x = x;
      last_y = y;
    };
    for (std::size_t i = 0; i < count;) {
      if (!std::isfinite(series.values[i])) {
        finish();
        ++i;
        continue;
      }
      const double x = X(plot_.x[i]);
      Extent column;
      std::size_t end = i;
      while (end < count && std::isfinite(series.values[end]) && X(plot_.x[end]) < x + 0.5) {
        column.Include(series.values[end]);
        ++end;
      }
      if (end - i <= 2) {
        point(x, Y(series.values[i]));
        ++i;
        continue;
      }
      point(x, Y(series.values[i]));
      point(x, Y(column.low));
      point(x, Y(column.high));
      point(x, Y(series.values[end - 1]));
      i = end;
    }
    if (drawing && steps) path.LineTo(HasBars(plot_) ? area_.right : last_x, last_y);
    finish();
    return path;
  }

  void DrawLine(const Plot::Line& line) {
    const double y = Y(line.y);
    const std::string_view color = line.tone == Tone::kPlain ? kInk : ColorOf(line.tone);
    out_.Line({.left = area_.left, .top = y, .right = area_.right, .bottom = y},
              {.color = color, .width = 1.5, .dashes = "6 4"});
  }

  void LabelLine(const Plot::Line& line) {
    const double y = Y(line.y);
    const double middle = (area_.left + area_.right) / 2;
    const std::array<LabelPlace, 6> candidates = {{{area_.right - 2, y - 5, "end"},
                                                   {area_.left + 4, y - 5, "start"},
                                                   {area_.right - 2, y + 14, "end"},
                                                   {area_.left + 4, y + 14, "start"},
                                                   {middle, y - 5, "middle"},
                                                   {middle, y + 14, "middle"}}};
    labels_->Place(out_, line.label, line.tone, candidates);
  }

  void LabelMark(const Plot::Mark& mark) {
    const double x = X(mark.x);
    const double y = Y(mark.y);
    std::vector<LabelPlace> candidates;
    for (int step = 0; step < 7; ++step) {
      const double away = 14.0 * step;
      for (const double side : {-1.0, 1.0}) {
        const double line = side < 0 ? y - 7 - away : y + 16 + away;
        candidates.push_back({x + 7, line, "start"});
        candidates.push_back({x - 7, line, "end"});
        candidates.push_back({x, line, "middle"});
      }
    }
    labels_->Place(out_, mark.label, mark.tone, candidates);
  }

  void LabelBands() {
    for (const Plot::Band& band : plot_.bands) {
      const double from = X(band.from);
      const double to = X(band.to);
      std::vector<LabelPlace> candidates;
      for (int step = 0; area_.top + 12 + 14.0 * step < area_.bottom; ++step) {
        const double line = area_.top + 12 + 14.0 * step;
        candidates.push_back({(from + to) / 2, line, "middle"});
        candidates.push_back({from + 4, line, "start"});
        candidates.push_back({to - 4, line, "end"});
      }
      labels_->Place(out_, band.label, band.tone, candidates);
    }
  }

  SvgDrawing& out_;
  const Plot& plot_;
  const Box place_;
  Box area_;
  std::optional<PlotAxis> x_axis_{};
  std::optional<PlotAxis> y_axis_{};
  std::optional<LabelPlaces> labels_{};
};

}  // namespace

AxisRange ValueRange(const Plot& plot, const std::vector<Plot>& beside) {
  const bool logarithmic = plot.y_axis.logarithmic;
  Extent extent{.positive_only = logarithmic};
  if (!logarithmic && plot.y_axis.unit != Unit::kTime) extent.Include(0);
  IncludeValues(plot, extent);
  for (const Plot& other : beside) {
    const bool alike = other.y_axis.unit == plot.y_axis.unit &&
                       other.y_axis.label == plot.y_axis.label &&
                       other.y_axis.logarithmic == logarithmic;
    if (alike) IncludeValues(other, extent);
  }
  // Room for the least bar, and for what is written above the highest.
  if (logarithmic) return {.low = extent.low * 0.6, .high = extent.high * 1.6};
  const double above = plot.marks.empty() && plot.bands.empty() ? 0.08 : 0.16;
  return {.low = extent.low, .high = extent.high + above * (extent.high - extent.low)};
}

std::string_view SeriesColor(const Plot& plot, std::size_t which) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < which; ++i) place += plot.series[i].tone == Tone::kPlain ? 1U : 0U;
  return ColorOf(plot.series[which].tone, place);
}

double NumbersWidth(const Plot& plot, AxisRange values, double tall) {
  return WidestNumber(ValueAxis(plot, values, tall));
}

void DrawPlot(SvgDrawing& out, const Plot& plot, const Box& place, const PlotParts& parts) {
  PlotDrawing(out, plot, place).Draw(parts);
}

}  // namespace weir::lab
