#include "lab/fleet/judge.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLongAgo = -std::chrono::hours(1);

class Trial {
 public:
  Trial(const Record& record, Verdict& verdict)
      : record_(record),
        verdict_(verdict),
        last_without_room_(static_cast<std::size_t>(record.nodes), kLongAgo) {
    for (const FaultNote& fault : record.faults) {
      moves_server_clock_ |= fault.moves_clock && !fault.node;
      restarts_ |= fault.forgets && fault.node;
    }
  }

  void Judge() {
    for (const Asked& asked : record_.asked) {
      JudgeCount(asked);
      if (asked.answers == 0) continue;
      JudgePolicy(asked);
      JudgeAnswer(asked);
      JudgeTime(asked);
      JudgeRecovery(asked);
    }
    JudgeWatches();
    JudgeFleet();
    for (int i = 0; i < record_.nodes; ++i) JudgeCounters(i);
  }

 private:
  void JudgeCount(const Asked& asked) {
    const int wanted = asked.is_lost ? 0 : 1;
    verdict_.Check(4, asked.answers == wanted, [&] {
      return "answered " + std::to_string(asked.answers) + " times " + AskedAt(asked);
    });
  }

  void JudgePolicy(const Asked& asked) {
    verdict_.Check(3, asked.mixed_up.empty(),
                   [&] { return asked.mixed_up + " " + AskedAt(asked); });
  }

  void JudgeAnswer(const Asked& asked) {
    const auto check = [&](bool is_right, const std::string& what) {
      verdict_.Check(2, is_right, [&] { return what + " " + AskedAt(asked); });
    };
    const std::string reason(NameOf(asked.reason));
    const bool tells_of_none = asked.reason == Reason::kOk || asked.reason == Reason::kNoRule ||
                               asked.reason == Reason::kAllowList;
    check(asked.allowed == tells_of_none, (asked.allowed ? "allowed: " : "denied: ") + reason);
    if (asked.uses.empty() || !asked.mixed_up.empty()) return;
    const bool by_store = asked.fate == Fate::kDecided;
    if (record_.is_shared() && asked.fate != Fate::kNotAsked) {
      check(by_store == (asked.source == Source::kStore),
            "source " + std::string(NameOf(asked.source)) + " of what the store " +
                (by_store ? "decided" : "did not decide"));
    }
    bool all_pass = true;
    bool has_closed = false;
    bool all_open = true;
    for (const Use& use : asked.uses) {
      if (use.is_shadow) continue;
      all_pass &= use.allowed;
      has_closed |= use.mode == FailureMode::kClosed;
      // What is denied without being counted is denied by whoever decides.
      const Limit& limit = record_.limits[static_cast<std::size_t>(use.limit)].limit;
      all_open &= use.mode == FailureMode::kOpen && limit.kind() != LimitKind::kDeny;
    }
    check(asked.allowed == all_pass, "its rules say otherwise");
    if (!record_.is_shared() || by_store || asked.fate == Fate::kNotAsked) return;
    check(!has_closed || !asked.allowed, "let through by open or static, though a rule is closed");
    check(!all_open || asked.allowed, "denied, though all its rules are open");
  }

  bool WasHeld(const Asked& asked) const {
    return std::ranges::any_of(record_.faults, [&](const FaultNote& fault) {
      return fault.stops && fault.node == asked.node && fault.begins <= asked.answered &&
             fault.ends >= asked.at;
    });
  }

  void JudgeTime(const Asked& asked) {
    if (WasHeld(asked)) return;
    const Duration took = asked.answered - asked.at;
    const Duration most = record_.is_shared() ? record_.timeout + milliseconds(2) : milliseconds(1);
    verdict_.Check(6, took <= most, [&] {
      return "took " + std::to_string(took.count()) + " ns: " + asked.error + " " + AskedAt(asked);
    });
    if (!asked.breaker_was_open) return;
    verdict_.Check(6, took <= milliseconds(1), [&] {
      return "took " + std::to_string(took.count()) + " ns with the breaker open " + AskedAt(asked);
    });
  }

  void JudgeRecovery(const Asked& asked) {
    if (!record_.is_shared() || asked.fate == Fate::kNotAsked) return;
    // One who has just begun has no connection yet.
    if (asked.at < HealedBefore(record_, asked.answered) + seconds(2)) return;
    // Where there is room for few, who comes with many is turned away however well the store is.
    const bool no_room = asked.error.contains("too many calls are under way");
    Duration& last_without_room = last_without_room_[static_cast<std::size_t>(asked.node)];
    if (no_room) last_without_room = std::max(last_without_room, asked.answered);
    verdict_.Check(7, asked.fate == Fate::kDecided || no_room, [&] {
      return "not decided by the store: " + asked.error + " " + AskedAt(asked);
    });
  }

  void JudgeWatches() {
    verdict_.Of(5).checked += record_.caps.looks;
    for (const std::string& excess : record_.caps.excesses) verdict_.Break(5, excess);
    // Not counted as checks: that nobody storms a server does not say that it is asked again.
    for (const std::string& excess : record_.reconnects.excesses) verdict_.Break(7, excess);
  }

  void JudgeFleet() {
    // It is well again once nothing has failed for a second; whom nobody asks does not find out.
    const Duration last = std::min(record_.ended, record_.asked_until + seconds(1));
    const Duration healed = HealedBefore(record_, record_.ended);
    if (!record_.is_shared() || last < healed + seconds(3)) return;
    for (int i = 0; i < record_.nodes; ++i) {
      const NodeNote& node = record_.node_notes[static_cast<std::size_t>(i)];
      const std::string which = "node " + std::to_string(i + 1);
      // Who turned somebody away just now is none the better for it.
      const bool had_no_room =
          record_.ended < last_without_room_[static_cast<std::size_t>(i)] + seconds(3);
      verdict_.Check(7, !node.is_degraded_at_end || had_no_room,
                     [&] { return which + " still thinks that the store fails"; });
      if (record_.fleet_size != 0 || moves_server_clock_ || restarts_) continue;
      verdict_.Check(7, node.fleet_size_at_end == record_.nodes, [&] {
        return which + " counts " + std::to_string(node.fleet_size_at_end) + " nodes";
      });
    }
  }

  static std::pair<std::string, std::string> OutcomeOf(const std::string& rule, const Use& use) {
    return {rule, use.allowed ? "allowed" : use.is_shadow ? "shadow_denied" : "denied"};
  }

  void JudgeCounters(int node) {
    OutcomeCounts answered;
    for (const Asked& asked : record_.asked) {
      if (asked.node != node || asked.answers == 0) continue;
      for (const Use& use : asked.uses) {
        ++answered[OutcomeOf(record_.tracks[static_cast<std::size_t>(use.track)].rule, use)];
      }
      if (!asked.uses.empty()) continue;
      const bool has_no_rule = asked.reason == Reason::kNoRule;
      const bool is_listed =
          asked.reason == Reason::kAllowList || asked.reason == Reason::kDenyList;
      if (has_no_rule || is_listed) ++answered[{"", std::string(NameOf(asked.reason))}];
    }
    const OutcomeCounts& counted = record_.node_notes[static_cast<std::size_t>(node)].counted;
    OutcomeCounts all = answered;
    all.insert(counted.begin(), counted.end());
    const auto in = [](const OutcomeCounts& counts, const auto& what) {
      const auto found = counts.find(what);
      return found == counts.end() ? std::uint64_t{0} : found->second;
    };
    for (const auto& each : all) {
      const auto& what = each.first;
      verdict_.Check(8, in(answered, what) == in(counted, what), [&] {
        return "node " + std::to_string(node + 1) + " counted " + what.first + " " + what.second +
               " " + std::to_string(in(counted, what)) + " times and answered so " +
               std::to_string(in(answered, what)) + " times";
      });
    }
  }

  const Record& record_;
  Verdict& verdict_;
  std::vector<Duration> last_without_room_;  // By node.
  bool moves_server_clock_ = false;
  bool restarts_ = false;
};

}  // namespace

std::string AskedAt(const Asked& asked) {
  char text[80];
  std::snprintf(text, sizeof text, "(asked at %.6f s of node %d)",
                std::chrono::duration<double>(asked.at).count(), asked.node + 1);
  return text;
}

Duration HealedBefore(const Record& record, Duration at) {
  Duration healed{0};
  for (const FaultNote& fault : record.faults) {
    if (!fault.is_harmless && fault.begins <= at) healed = std::max(healed, fault.ends);
  }
  // What was sent while it lasted fails when its time is up, and the store is left alone for a
  // while. Of the usual timeouts nobody notices.
  const bool is_felt_later =
      healed > Duration(0) && record.is_shared() && record.timeout > seconds(1);
  return is_felt_later ? healed + 2 * record.timeout : healed;
}

Verdict::Verdict()
    : findings{{
          {.name = "I1", .says = "never more let through than the limit promises"},
          {.name = "I2", .says = "every denial has a reason that holds"},
          {.name = "I3", .says = "every decision under one whole policy"},
          {.name = "I4", .says = "every request answered once"},
          {.name = "I5", .says = "calls, connections and memory within caps"},
          {.name = "I6", .says = "every answer in time"},
          {.name = "I7", .says = "back to normal 2 s after the last fault"},
          {.name = "I8", .says = "answers, counters and store agree"},
      }} {}

bool Verdict::is_clean() const noexcept {
  return std::ranges::all_of(findings, [](const Finding& it) { return it.broken == 0; });
}

void Verdict::Break(int number, std::string what) {
  constexpr std::size_t kMostExamples = 5;
  Finding& finding = Of(number);
  ++finding.broken;
  if (finding.examples.size() < kMostExamples) finding.examples.push_back(std::move(what));
}

Verdict Judge(const Record& record) {
  Verdict verdict;
  Trial(record, verdict).Judge();
  JudgeTracks(record, verdict);
  return verdict;
}

}  // namespace weir::lab
