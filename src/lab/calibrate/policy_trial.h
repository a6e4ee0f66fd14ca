// What a policy would have done to the requests of a log: the engine itself decides, for the times
// in the log, with all rules in shadow mode, so that each is judged by itself.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/result.h>

namespace weir::lab {

// Belongs to one thread.
class PolicyTrial {
 public:
  static constexpr std::size_t kMostRules = 8;

  // `yaml` is a policy with the rules of these names.
  static Result<PolicyTrial> Begin(const std::string& yaml, const std::vector<std::string>& rules,
                                   WallTime first);

  // One bit for each rule that would have denied it. Not earlier than those before.
  std::uint8_t Try(const Request& request, WallTime time);

  std::size_t bytes() const;

 private:
  PolicyTrial(std::vector<std::string> rules, std::unique_ptr<ManualClock> clock, WallTime first,
              Engine engine)
      : rules_(std::move(rules)),
        clock_(std::move(clock)),
        first_(first),
        began_(clock_->Read().steady),
        engine_(std::move(engine)) {}

  std::vector<std::string> rules_;
  std::unique_ptr<ManualClock> clock_;
  WallTime first_;
  SteadyTime began_;
  Engine engine_;
};

}  // namespace weir::lab
