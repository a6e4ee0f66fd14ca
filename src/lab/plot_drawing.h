// What is within the axes of a picture, and the axes.
#pragma once

#include <string_view>
#include <vector>

#include "lab/plot_axis.h"
#include "lab/report.h"
#include "lab/svg_drawing.h"

namespace weir::lab {

// Of the plot, and of those that are to be compared with it.
AxisRange ValueRange(const Plot& plot, const std::vector<Plot>& beside = {});

std::string_view SeriesColor(const Plot& plot, std::size_t which);

// How much room the numbers beside the values of a plot take that is about so tall.
double NumbersWidth(const Plot& plot, AxisRange values, double tall);

struct PlotParts {
  AxisRange values{};
  // At least so much room for them, so that plots below each other begin at the same place.
  double numbers_width = 0;
  bool x_label = true;
  bool y_label = true;
};
void DrawPlot(SvgDrawing& out, const Plot& plot, const Box& place, const PlotParts& parts);

}  // namespace weir::lab
