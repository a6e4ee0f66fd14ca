// A small random source for waiting times: the same in every run of the same seed.
#pragma once

#include <cstdint>

#include <weir/time.h>

#include "base/mix.h"

namespace weir::redis {

class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t Next() noexcept { return Mix(state_++); }
  // From nothing up to `most`, all lengths alike.
  Duration UpTo(Duration most) noexcept {
    const auto length = static_cast<std::uint64_t>(most.count() < 0 ? 0 : most.count());
    return Duration(static_cast<std::int64_t>(Next() % (length + 1)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace weir::redis
