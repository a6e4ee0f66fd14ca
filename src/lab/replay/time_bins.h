// Counts over time in a bounded number of bins, whatever the time: when they do not suffice, two
// become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <weir/time.h>

namespace weir::lab {

class TimeBins {
 public:
  static constexpr std::size_t kMostBins = 600;

  // Times must not go back before the first by more than nothing, which is where bins begin.
  void Add(WallTime time, std::size_t series, std::uint64_t count = 1) {
    if (time < bin_begins_ || time >= bin_ends_) MoveTo(time);
    std::vector<std::uint64_t>& bin = bins_[bin_];
    if (series >= bin.size()) bin.resize(series + 1);
    bin[series] += count;
  }

  Duration width() const noexcept { return width_; }
  std::size_t size() const noexcept { return bins_.size(); }
  WallTime BeginOf(std::size_t bin) const noexcept {
    return origin_ + width_ * static_cast<Duration::rep>(bin);
  }
  std::uint64_t Count(std::size_t bin, std::size_t series) const noexcept {
    return series < bins_[bin].size() ? bins_[bin][series] : 0;
  }

 private:
  void MoveTo(WallTime time);
  void Halve();

  WallTime origin_{};
  Duration width_ = std::chrono::seconds(1);
  std::vector<std::vector<std::uint64_t>> bins_;
  std::size_t bin_ = 0;  // Where the last one went, which is from
  WallTime bin_begins_{WallTime::max()};
  WallTime bin_ends_{WallTime::min()};
};

}  // namespace weir::lab
