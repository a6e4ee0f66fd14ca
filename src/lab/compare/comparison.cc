#include "lab/compare/comparison.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::lab {
namespace {

// The first of its kind; the others keep their order.
template <typename T, typename Kind>
void BringToFront(std::vector<T>& all, Kind is_of_kind) {
  const auto found = std::ranges::find_if(all, is_of_kind);
  if (found != all.end()) std::rotate(all.begin(), found, std::next(found));
}

}  // namespace

Comparison Compare(const Limit& limit, Traffic traffic, Progress* progress) {
  Contenders contenders = MakeContenders(limit);
  const Duration period = limit.spec().period;
  Comparison comparison{.limit = limit,
                        .traffic = {},
                        .requests = std::ssize(traffic.arrivals),
                        .left_out = std::move(contenders.left_out)};
  if (progress != nullptr) {
    progress->SetTotal(contenders.all.size() * traffic.arrivals.size());
  }

  // Whoever queues lets requests go ahead when no more come: all are drawn until then, so those who
  // queue are first.
  BringToFront(contenders.all, [](const Contender& one) { return one.limit.spec().queue; });
  Duration length = traffic.length;
  for (Contender& contender : contenders.all) {
    Rival rival{.contender = std::move(contender), .trial = {}};
    rival.trial = RunTrial(rival.contender.limit, traffic, progress);
    std::vector<Arrival>& passed = rival.trial.passed;
    if (!passed.empty()) length = std::max(length, passed.back().at + Duration(1));
    if (comparison.rivals.empty()) comparison.timeline = MakePlotBins(length, period);
    rival.passed = SumsOf(passed, comparison.timeline);
    rival.trailing = PeaksOf(passed, period, comparison.timeline);
    rival.bytes_per_key = BytesPerKey(rival.contender.limit);
    passed = {};
    comparison.rivals.push_back(std::move(rival));
  }
  // The token bucket, which is the default, comes first.
  BringToFront(comparison.rivals, [](const Rival& one) {
    return one.contender.limit.algorithm() == Algorithm::kTokenBucket;
  });

  for (const Arrival& arrival : traffic.arrivals) comparison.cost += arrival.cost;
  comparison.came = SumsOf(traffic.arrivals, comparison.timeline);
  comparison.came_trailing = PeaksOf(traffic.arrivals, period, comparison.timeline);
  comparison.traffic = std::move(traffic);
  comparison.traffic.arrivals = {};
  return comparison;
}

}  // namespace weir::lab
