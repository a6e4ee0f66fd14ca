#include "lab/calibrate/policy_trial.h"

#include <algorithm>
#include <span>

namespace weir::lab {
namespace {

// Nobody may be forgotten for want of room, or those denied would be too few.
constexpr std::int64_t kMemory = std::int64_t{64} << 30;

}  // namespace

Result<PolicyTrial> PolicyTrial::Begin(const std::string& yaml,
                                       const std::vector<std::string>& rules, WallTime first) {
  PolicyReport report = Policy::Parse(yaml, "the policy that was learnt");
  if (report.policy) {
    PolicySpec spec = report.policy->spec();
    spec.memory.cap = kMemory;
    report = Policy::Make(std::move(spec));
  }
  if (!report.policy || rules.size() > kMostRules) {
    const std::string why =
        report.problems.empty() ? "too many rules" : report.problems.front().ToString();
    return std::unexpected(Error{ErrorCode::kInternal, why});
  }
  auto clock = std::make_unique<ManualClock>(first);
  Result<Engine> engine = Engine::Make(*report.policy, {.clock = clock.get()});
  if (!engine) return std::unexpected(engine.error());
  return PolicyTrial(rules, std::move(clock), first, *std::move(engine));
}

std::uint8_t PolicyTrial::Try(const Request& request, WallTime time) {
  std::array<RuleDecision, kMostRules> each;
  BatchRequest asked{.request = request, .each = each};
  engine_.CheckBatch({&asked, 1}, {.steady = began_ + (time - first_), .wall = time});
  std::uint8_t denied = 0;
  for (std::size_t i = 0; i < std::min(asked.answer.rules, rules_.size()); ++i) {
    if (each[i].decision.allowed) continue;
    const auto rule = std::ranges::find(rules_, each[i].decision.rule);
    if (rule != rules_.end()) {
      denied = static_cast<std::uint8_t>(denied | (1U << (rule - rules_.begin())));
    }
  }
  return denied;
}

std::size_t PolicyTrial::bytes() const { return engine_.Stats().store.bytes; }

}  // namespace weir::lab
