// The state of a key as the script read it, and what became of it: the script says what was decided
// and what it was decided on, the steps of the algorithms say what that means for the caller.
//
// Values are drawn where the script writes them. All times count nanoseconds from kEpoch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <weir/limit.h>

#include "algorithm/sliding_log.h"
#include "algorithm/step.h"
#include "store/redis/charge_numbers.h"
#include "store/redis/key_text.h"

namespace weir::redis {

// When a call was decided.
struct Moment {
  std::int64_t now = 0;  // As the script counts; held at 0.
  WallTime wall{};       // As the server's clock says.
};

// The same request, but one that charges nothing.
inline StepRequest AskedOnly(StepRequest request) noexcept {
  request.verb = Verb::kPeek;
  return request;
}

// A step with its receipt in nanoseconds from kEpoch.
struct SharedStep {
  Decision decision{};
  std::int64_t charged = 0;
  std::int64_t receipt = 0;
};

// Of any kind but logs, which are too long to be read as a whole.
class KeyState {
 public:
  // As nobody has touched it, or as it must be taken.
  void Clear() noexcept { present_ = false; }
  // The value of a key. What the script would not take for its own is as good as none.
  void Read(StateKind kind, std::string_view value);

  // What the step is told. With kApply the state is as after it, else only mended.
  SharedStep Do(const Limit& limit, const StepRequest& request, const Moment& moment,
                Effect effect);

 private:
  bool ReadBucket(std::string_view value) noexcept;
  bool ReadWindow(StateKind kind, std::string_view value);
  template <typename Steps>
  SharedStep DoWith(const Steps& steps, const Limit& limit, const StepRequest& request,
                    const Moment& moment, Effect effect);

  friend struct BucketSteps;
  friend struct FixedSteps;
  friend struct SlidingSteps;
  friend struct StrictSteps;

  bool present_ = false;
  std::int64_t at_ = 0;                 // When the bucket is full, or the end of the window.
  std::vector<std::int64_t> counts_{};  // The newest first.
  std::uint32_t window_[2] = {0, 0};    // As the script was told.
  std::int64_t limit_ = 0;
  std::uint32_t family_ = 0;
};

// What a charge on a log saw, in its own words.
struct LogSight {
  std::int64_t used = 0;
  std::int64_t last = -1;  // When the newest was taken; -1: none.
  std::int64_t used_after = 0;
  std::int64_t last_after = -1;
  std::int64_t fits_with = -1;  // A denied one fits when what was taken then is over.

  // False if it makes no sense.
  bool Read(std::string_view value) noexcept;
};
SharedStep DescribeLog(const Limit& limit, const StepRequest& request, const Moment& moment,
                       const LogSight& sight, Effect effect) noexcept;

}  // namespace weir::redis
