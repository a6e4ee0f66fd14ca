// How many processes share a store: each says now and then that it is there.
#pragma once

#include <functional>
#include <string_view>

#include <weir/result.h>
#include <weir/time.h>

namespace weir {

// Who has not been heard of for so long is not counted.
inline constexpr Duration kFleetMemory = std::chrono::seconds(5);

// Belongs to a loop and its thread.
class Fleet {
 public:
  virtual ~Fleet() = default;

  // `counted` is told how many there are, `member` among them, or why nobody knows. It is called
  // once, unless the fleet ends before.
  virtual void Beat(std::string_view member, std::function<void(Result<int>)> counted) = 0;
};

}  // namespace weir
