// An axis of a picture: from where to where, and the round numbers that are written beside it.
#pragma once

#include <string>
#include <vector>

#include "lab/report.h"

namespace weir::lab {

struct AxisRange {
  double low = 0;
  double high = 1;
};

class PlotAxis {
 public:
  struct Tick {
    double value = 0;
    std::string text{};
  };
  struct Options {
    Unit unit = Unit::kCount;
    bool logarithmic = false;
    int ticks = 6;  // At most, about.
  };
  PlotAxis(AxisRange range, const Options& options);

  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  // Where a value is: 0 at the low end, 1 at the high end.
  double Place(double value) const;

 private:
  void AddLinear(const Options& options);
  void AddLogarithmic(const Options& options);

  double low_ = 0;
  double high_ = 1;
  const bool logarithmic_;
  std::vector<Tick> ticks_{};
};

}  // namespace weir::lab
