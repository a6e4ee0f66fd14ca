// Where the labels of a picture go: where each meets no other, and never out of the picture.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lab/svg_drawing.h"

namespace weir::lab {

struct LabelPlace {
  double x = 0;
  double y = 0;  // Of the line that the text stands on.
  std::string_view anchor = "start";
};

class LabelPlaces {
 public:
  LabelPlaces(const Box& inside, double text_size) : inside_(inside), size_(text_size) {}

  // No label goes here,
  void Take(const Box& box) { taken_.push_back(box); }
  // and rather none here.
  void Avoid(double x, double y) { curves_.push_back({.x = x, .y = y}); }
  // At the place that is free of other labels and has the least of a curve behind it, the first of
  // them if there are several; if none is free, at the first within the picture.
  void Place(SvgDrawing& out, std::string_view label, Tone tone,
             std::span<const LabelPlace> places);

 private:
  struct Point {
    double x = 0;
    double y = 0;
  };
  Box BoxOf(const LabelPlace& place, double width) const;

  const Box inside_;
  const double size_;
  std::vector<Box> taken_{};
  std::vector<Point> curves_{};
};

}  // namespace weir::lab
