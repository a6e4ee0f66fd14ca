// How much of a limit is used at a moment, by what is known of every charge: what a store should
// hold, worked out anew from the definition of each algorithm.
#pragma once

#include <cstdint>
#include <deque>

#include <weir/limit.h>

namespace weir::lab {

// Charges and questions come in the order of their times.
class Usage {
 public:
  // `wall_offset`: how far the calendar that windows go by is ahead of the world's.
  Usage(const Limit& limit, Duration wall_offset);

  void Add(Duration at, std::int64_t cost, Duration live_until = Duration::max());
  // Buckets: at that time there is so much in it, whatever was added before; nothing is known of
  // what was before that.
  void Fill(Duration at, double level);

  // At most, and at least. The two differ where the definition leaves room.
  double Most(Duration at);
  double Least(Duration at);

 private:
  struct Charge {
    Duration at;
    std::int64_t cost;
    Duration live_until;
    std::int64_t before;  // The cost of all that came before it, so that no sum takes a walk.
  };
  using Place = std::deque<Charge>::const_iterator;

  double Level(Duration at) const;
  double InWindow(Duration at) const;
  double InTwoWindows(Duration at) const;
  Place FirstAfter(Duration at) const;
  Place FirstOfWindow(std::int64_t window) const;
  double Sum(const Place& first, const Place& last) const;
  // Since then, that moment included.
  double Since(Duration since) const;
  double Live(Duration at) const;
  std::int64_t WindowOf(Duration at) const;
  void Forget(Duration before);

  const LimitSpec spec_;
  const Duration wall_offset_;
  const double rate_;           // Buckets: units a nanosecond.
  double level_ = 0;            // Buckets.
  Duration last_{0};            // Likewise.
  std::deque<Charge> charges_;  // Of others: those that may still count.
  std::int64_t total_ = 0;      // Of all that were added.
};

}  // namespace weir::lab
