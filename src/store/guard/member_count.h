// How many processes share the store, from what heartbeats count. More are believed at once; fewer
// only when no more were seen for as long as a member is remembered: a store that was restarted
// counts from one again, and to believe it then would give every process too large a share.
#pragma once

#include <algorithm>
#include <atomic>

#include <weir/time.h>

#include "store/fleet.h"

namespace weir {

// `value` is for any thread, Note for one at a time.
class MemberCount {
 public:
  // 0: never counted.
  int value() const noexcept { return value_.load(std::memory_order_relaxed); }

  void Note(int members, SteadyTime now) noexcept {
    members = std::max(members, 1);
    const bool over = now - confirmed_ >= kFleetMemory || now < confirmed_;
    if (members < value() && !over) {
      most_since_ = std::max(most_since_, members);
      return;
    }
    value_.store(std::max(members, members < value() ? most_since_ : 0), std::memory_order_relaxed);
    confirmed_ = now;
    most_since_ = 0;
  }

 private:
  std::atomic<int> value_{0};
  SteadyTime confirmed_{};  // When as many were seen last.
  int most_since_ = 0;
};

}  // namespace weir
