// A row of small bars in a line of text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::lab {

// Shared by whatever is to be compared by eye.
struct SparkScale {
  double low = 0;   // No bar at all, or the smallest there is.
  double high = 0;  // The whole height.
  bool logarithmic = false;

  void Include(const std::vector<double>& values);
};

// At most `width` values, of which each is the greatest of those it stands for: peaks stay. Not a
// number where there was none.
std::vector<double> Peaks(const std::vector<double>& values, std::size_t width);
std::string SparklineOn(const SparkScale& scale, const std::vector<double>& values,
                        std::size_t width);

}  // namespace weir::lab
