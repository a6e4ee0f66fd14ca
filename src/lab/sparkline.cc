#include "lab/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lab/report.h"

namespace weir::lab {

void SparkScale::Include(const std::vector<double>& values) {
  for (const double value : values) {
    if (!std::isfinite(value) || (logarithmic && value <= 0)) continue;
    low = logarithmic && low == 0 ? value : std::min(low, value);
    high = std::max(high, value);
  }
}

std::vector<double> Peaks(const std::vector<double>& values, std::size_t width) {
  if (values.size() <= width) return values;
  std::vector<double> peaks(width, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < values.size(); ++i) {
    double& peak = peaks[i * width / values.size()];
    if (!std::isnan(values[i]) && !(peak >= values[i])) peak = values[i];
  }
  return peaks;
}

std::string SparklineOn(const SparkScale& scale, const std::vector<double>& values,
                        std::size_t width) {
  constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  for (double value : Peaks(values, width)) {
    if (std::isnan(value)) {
      line += ' ';
      continue;
    }
    double low = scale.low;
    double high = scale.high;
    if (scale.logarithmic) {
      value = std::log(std::max(value, low));
      low = std::log(low);
      high = std::log(high);
    }
    double part = high > low ? (value - low) / (high - low) : 0;
    part = std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : value > 0 ? 1 : 0;
    line += kBars[static_cast<std::size_t>(std::lround(part * 7))];
  }
  return line;
}

std::string Sparkline(const std::vector<double>& values, std::size_t width) {
  SparkScale scale;
  scale.Include(values);
  return SparklineOn(scale, values, width);
}

}  // namespace weir::lab
