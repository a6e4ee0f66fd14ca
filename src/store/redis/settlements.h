// Commits and cancels of reservations that may have a part in each of several slots. The first
// part's record says where the others are, and how they are settled: whoever asks first writes that
// into it, and everybody who comes later does the same, whatever they wanted. It is settled last,
// so that a settlement which failed half-way can be repeated: the parts that were settled have no
// record any more, and are left as they are; the others are settled then.
#pragma once

#include <memory>
#include <unordered_map>

#include "store/redis/dispatcher.h"
#include "store/store.h"

namespace weir::redis {

// Belongs to the loop's thread.
class Settlements {
 public:
  explicit Settlements(Dispatcher& dispatcher);
  Settlements(const Settlements&) = delete;
  Settlements& operator=(const Settlements&) = delete;
  ~Settlements();

  // kCommit or kCancel. Who came too late to have it their way is told kNotFound.
  void Submit(Group& group, SteadyTime deadline, Completion& completion) noexcept;

 private:
  class Settlement;

  Dispatcher& dispatcher_;
  std::unordered_map<Settlement*, std::shared_ptr<Settlement>> under_way_;
};

}  // namespace weir::redis
