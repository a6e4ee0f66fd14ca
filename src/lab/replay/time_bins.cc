#include "lab/replay/time_bins.h"

#include <algorithm>

namespace weir::lab {

void TimeBins::MoveTo(WallTime time) {
  // Bins begin at whole multiples of their width, so that they mean something to people.
  if (bins_.empty()) origin_ = std::chrono::floor<std::chrono::seconds>(time);
  while (static_cast<std::size_t>((time - origin_) / width_) >= kMostBins) Halve();
  bin_ = static_cast<std::size_t>((time - origin_) / width_);
  if (bin_ >= bins_.size()) bins_.resize(bin_ + 1);
  bin_begins_ = BeginOf(bin_);
  // The last bin may end where time does.
  bin_ends_ = bin_begins_ > WallTime::max() - width_ ? WallTime::max() : bin_begins_ + width_;
}

void TimeBins::Halve() {
  std::vector<std::vector<std::uint64_t>> halved((bins_.size() + 1) / 2);
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    std::vector<std::uint64_t>& to = halved[i / 2];
    if (to.size() < bins_[i].size()) to.resize(bins_[i].size());
    for (std::size_t j = 0; j < bins_[i].size(); ++j) to[j] += bins_[i][j];
  }
  bins_ = std::move(halved);
  width_ *= 2;
}

}  // namespace weir::lab
