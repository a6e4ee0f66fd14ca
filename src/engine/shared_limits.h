// Limits that come with requests, as a shared store counts them. Few different ones come again and
// again, so the last of them are kept.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <weir/limit.h>
#include <weir/result.h>

namespace weir {

// Not thread-safe.
class SharedLimits {
 public:
  // The limit stays as long as somebody holds it. An error if no shared store can count by it.
  Result<std::shared_ptr<const Limit>> Of(const Limit& limit);

 private:
  static constexpr std::size_t kPlaces = 256;
  struct Place {
    LimitSpec spec{};
    std::shared_ptr<const Limit> limit{};
  };

  std::array<Place, kPlaces> places_{};
};

}  // namespace weir
