// Groups whose keys live on several servers, or in several slots of a cluster: each part is decided
// where it lives, all at the same time. When a part denies, or has no answer, what the others took
// is given back, each with the time at which it was taken, so that just that is undone. A part that
// ended without an answer is neither given back nor tried again, and the whole group ends with its
// error.
//
// So nobody has more than the limits say; who is denied may for a moment hold what others could
// have had.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "net/loop.h"
#include "store/redis/dispatcher.h"
#include "store/redis/empty_keys.h"
#include "store/store.h"

namespace weir::redis {

// Belongs to the loop's thread.
class SplitGroups {
 public:
  // Where a key lives: charges for which it says the same are decided together.
  struct Place {
    std::uint64_t id = 0;
    std::uint16_t slot = 0;
  };
  using Locate = std::function<Place(const Charge&)>;

  SplitGroups(Loop& loop, const KeyHasher& hasher, Dispatcher& dispatcher, Locate locate);
  SplitGroups(const SplitGroups&) = delete;
  SplitGroups& operator=(const SplitGroups&) = delete;
  ~SplitGroups();

  void Submit(Group& group, SteadyTime deadline, Completion& completion) noexcept;
  EmptyKeys& empty_keys() noexcept { return empty_keys_; }

 private:
  class Whole;

  // Denies it by what is known here. False if nothing is.
  bool DenyHere(Group& group, SteadyTime now) noexcept;

  Loop& loop_;
  const KeyHasher& hasher_;
  Dispatcher& dispatcher_;
  const Locate locate_;
  EmptyKeys empty_keys_;
  std::unordered_map<Whole*, std::shared_ptr<Whole>> wholes_;
};

}  // namespace weir::redis
