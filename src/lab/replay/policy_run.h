// One policy, and what it did to the requests of a log. The engine is the real one; its time is
// that of the log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <weir/clock.h>
#include <weir/engine.h>

#include "lab/log/log_reader.h"
#include "lab/replay/key_tally.h"
#include "lab/replay/time_bins.h"

namespace weir::lab {

struct RuleOutcome {
  std::string name{};
  bool is_shadow = false;  // For all keys, or for some of them.
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t shadow_denied = 0;  // Would have been.
  std::uint64_t keys_denied = 0;    // Whether it had a say or not.
  std::uint64_t delayed = 0;        // Admitted by a queue, to wait.
  Duration longest_delay{0};
  WallTime first_denied{};
  WallTime last_denied{};
};

struct PolicyOutcome {
  std::uint64_t requests = 0;
  std::uint64_t denied = 0;
  std::uint64_t addresses_denied = 0;
  // Of these no rule counted anything.
  std::uint64_t no_rule = 0;
  std::uint64_t allow_list = 0;
  std::uint64_t deny_list = 0;
  std::uint64_t keys = 0;            // That rules counted.
  std::uint64_t forgotten_keys = 0;  // For want of memory: memory.cap of the policy.
  std::vector<RuleOutcome> rules{};
  std::vector<TalliedKey> offenders{};
  std::vector<std::string> notices{};

  double denied_share() const noexcept {
    return requests == 0 ? 0 : static_cast<double>(denied) / static_cast<double>(requests);
  }
};

class PolicyRun {
 public:
  // `policy` counts in memory. Requests come from `begin` on.
  static Result<std::unique_ptr<PolicyRun>> Make(const Policy& policy, WallTime begin);
  PolicyRun(const PolicyRun&) = delete;
  PolicyRun& operator=(const PolicyRun&) = delete;

  // Decides the requests of `records`, in that order, and takes note of what came of them.
  void Check(std::span<BatchRequest> requests, std::span<const LogRecord> records);

  // The place of a rule among those of the policy; kNoRule if there is none of that name.
  static constexpr std::uint32_t kNoRule = 0xffff'ffff;
  std::uint32_t RuleOf(const Decision& decision) {
    if (decision.rule.empty()) return kNoRule;
    const auto found = places_.find(decision.rule.data());
    return found != places_.end() ? found->second : FindRule(decision.rule);
  }
  // What each rule said of the request of this number in the last batch.
  std::span<const RuleDecision> EachOf(std::size_t number, const Answer& answer) const {
    return std::span(each_).subspan(number * rules_at_once_,
                                    std::min(answer.rules, rules_at_once_));
  }
  // Whom the rule of this number (among those that counted the request) counts, as text.
  std::string KeyOf(const Request& request, std::size_t number) const;

  const std::vector<std::string>& rule_names() const noexcept { return names_; }
  // Series 0 are all requests; 1 + the place of a rule those that it denied, or would have in
  // shadow mode; behind the last rule those denied by a list.
  const TimeBins& bins() const noexcept { return bins_; }
  PolicyOutcome Outcome(std::size_t top) const;

 private:
  explicit PolicyRun(WallTime begin) : clock_(begin), began_(clock_.Read()) {}

  void NoteDenial(const BatchRequest& request, WallTime time);
  // Of the rule that was the one of this number to count the request.
  void NoteRule(const RuleDecision& rule, std::size_t number, const BatchRequest& request,
                WallTime time);
  std::uint32_t FindRule(std::string_view name);

  ManualClock clock_;
  const Now began_;
  std::optional<Engine> engine_;
  std::vector<std::string> notices_;
  std::vector<std::string> names_;
  std::vector<RuleOutcome> rules_;
  // The engine's own texts of the names, by where they are.
  std::unordered_map<const char*, std::uint32_t> places_;
  std::size_t rules_at_once_ = 0;
  bool has_shadows_or_queues_ = false;
  std::vector<RuleDecision> each_;
  KeyTally keys_;
  KeyTally addresses_;
  TimeBins bins_;
  std::uint64_t requests_ = 0;
  std::uint64_t denied_ = 0;
  std::uint64_t addresses_denied_ = 0;
};

}  // namespace weir::lab
