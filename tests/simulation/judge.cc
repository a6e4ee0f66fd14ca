#include "judge.h"

#include <algorithm>

#include "effect.h"
#include "ledger.h"
#include "sim/fixed_windows.h"
#include "sim/promise.h"
#include "store/guard/share.h"
#include "store/redis/charge_numbers.h"

namespace weir::simulation {
namespace {

using sim::Admission;
using sim::GivenBack;
using sim::Lapse;
using sim::PromiseTerms;
using sim::Touch;
using sim::WindowAt;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Trial {
 public:
  explicit Trial(const Scenario& scenario) : scenario_(scenario) {
    for (const Fault& fault : scenario.faults()) {
      if (fault.forgets) lapses_.push_back({fault.begins, fault.ends});
      // A clock jumps twice: there and back.
      if (fault.moves_clock) {
        jumps_.insert(jumps_.end(), {fault.begins, fault.ends});
        steps_back_.push_back(fault.moves_clock_back ? fault.begins : fault.ends);
      }
      forgets_ |= fault.forgets;
      moves_clock_ |= fault.moves_clock;
    }
  }

  std::vector<std::string> Verdict() {
    for (const Asked& asked : scenario_.asked()) {
      JudgeAnswer(asked);
      JudgeTime(asked);
      JudgeRecovery(asked);
      if (IsLossy()) continue;
      if (const auto found = FindContradiction(asked)) Say("I8", *found + At(asked));
    }
    for (std::size_t rule = 0; rule < scenario_.rules().size(); ++rule) {
      for (std::size_t key = 0; key < scenario_.keys().size(); ++key) {
        JudgeKey(static_cast<int>(rule), static_cast<int>(key));
      }
    }
    JudgeLedgers();
    for (const std::string& excess : scenario_.excesses()) Say("I5", excess);
    JudgeFleet();
    return std::move(broken_);
  }

 private:
  void Say(const char* invariant, const std::string& what) {
    // The first of each kind says enough.
    if (broken_.size() < 20) broken_.push_back(std::string(invariant) + " " + what);
  }
  static std::string At(const Asked& asked) {
    return " (asked at " + std::to_string(asked.at.count()) + " ns of process " +
           std::to_string(asked.process) + ")";
  }
  const RuleUnderTest& RuleOf(const Part& part) const {
    return scenario_.rules()[static_cast<std::size_t>(part.rule)];
  }
  bool WasHeld(const Asked& asked) const {
    return std::ranges::any_of(scenario_.holds(), [&](const Hold& hold) {
      return hold.process == asked.process && hold.begins <= asked.answered &&
             hold.ends >= asked.at;
    });
  }

  void JudgeAnswer(const Asked& asked) {
    if (asked.answers != 1) {
      return Say("I2", "answered " + std::to_string(asked.answers) + " times" + At(asked));
    }
    const Decision& decision = asked.group.decision;
    if (asked.group.error) {
      return Say("I2", "answered with an error: " + asked.group.error->message + At(asked));
    }
    const bool by_store = asked.fate == Fate::kDecided;
    if (by_store != (decision.source == Source::kStore)) {
      return Say("I2", "source " + std::string(NameOf(decision.source)) + " of what the store " +
                           (by_store ? "decided" : "did not decide") + At(asked));
    }
    if (by_store) {
      const Reason wanted = decision.allowed ? Reason::kOk : Reason::kLimited;
      if (decision.reason != wanted && decision.reason != Reason::kNeverFits) {
        Say("I2", "reason " + std::string(NameOf(decision.reason)) + At(asked));
      }
      return;
    }
    bool has_closed = false;
    bool all_open = true;
    for (const Part& part : asked.parts) {
      has_closed |= RuleOf(part).mode == FailureMode::kClosed;
      all_open &= RuleOf(part).mode == FailureMode::kOpen;
    }
    if (has_closed && decision.allowed) Say("I2", "let through, though closed" + At(asked));
    if (all_open && !decision.allowed) Say("I2", "denied, though open" + At(asked));
  }

  void JudgeTime(const Asked& asked) {
    if (asked.answers != 1 || WasHeld(asked)) return;
    const Duration took = asked.answered - asked.at;
    if (took > scenario_.settings().timeout + milliseconds(2)) {
      Say("I6", "took " + std::to_string(took.count()) + " ns: " + asked.error + At(asked));
    }
    if (asked.breaker_was_open && took > Duration(0)) {
      Say("I6", "took " + std::to_string(took.count()) + " ns with the breaker open" + At(asked));
    }
  }

  void JudgeRecovery(const Asked& asked) {
    // One who has just begun has no connection yet.
    const bool is_well = asked.at >= scenario_.healed() + seconds(2);
    // Where there is room for few, who comes with many is turned away however well the store is.
    const bool no_room = scenario_.settings().max_in_flight <= 8 &&
                         asked.error.find("too many calls are under way") != std::string::npos;
    if (is_well && !no_room && asked.answers == 1 && asked.fate != Fate::kDecided) {
      Say("I7", "not decided by the store: " + asked.error + At(asked));
    }
  }

  // Of a part that was let through, by the store or by the process itself.
  Admission AdmissionOf(const Asked& asked, std::size_t part, bool by_store) const {
    const RuleUnderTest& rule = RuleOf(asked.parts[part]);
    Admission it{.delay = asked.decisions[part].delay,
                 .asked = asked.at,
                 .answered = asked.answered,
                 .cost = asked.parts[part].cost};
    if (!by_store) {
      it.at = it.earliest = it.latest = scenario_.ProcessTime(asked.process, asked.answered);
    } else if (moves_clock_ || asked.is_split) {
      // Parts of a group are decided at different times.
      it.at = asked.answered;
      it.earliest = asked.at;
      it.latest = asked.answered;
    } else {
      it.at = it.earliest = it.latest = scenario_.ToWorld(asked.group.decided_at);
    }
    if (by_store && rule.limit.algorithm() == Algorithm::kFixedWindow) {
      it.window = WindowAt(rule.limit.spec(), TimeInStore(asked, part));
    }
    it.live_until = it.earliest + rule.limit.spec().lease;
    it.live_until = std::min(it.live_until, FirstSettling(asked));
    return it;
  }

  // When a part was charged, by the clock of its server. Of parts in several places the store tells
  // only what it goes by itself: the date in a log, the end of a window.
  WallTime TimeInStore(const Asked& asked, std::size_t part) const {
    if (!asked.is_split) return asked.group.decided_at;
    const Duration told(asked.receipts[part].at.count());
    const bool is_end = RuleOf(asked.parts[part]).limit.algorithm() == Algorithm::kFixedWindow;
    return redis::kEpoch + told - Duration(is_end ? 1 : 0);
  }

  bool IsLossy() const noexcept { return forgets_ || moves_clock_; }

  // By the store, or by a process itself.
  std::vector<GivenBack> GivenBackOf(int rule, int key, bool by_store) const {
    std::vector<GivenBack> given_back;
    for (const Asked& asked : scenario_.asked()) {
      for (std::size_t i = 0; i < asked.parts.size() && asked.afterwards != nullptr; ++i) {
        if (asked.parts[i].rule != rule || asked.parts[i].key != key) continue;
        const Effect effect = EffectInStore(asked, i, IsLossy());
        const std::int64_t change = by_store ? effect.least : LeastChange(asked, i);
        if (change < 0) given_back.push_back({effect.sent, effect.ended, -change});
      }
    }
    return given_back;
  }

  void JudgeKey(int rule, int key) {
    const Limit& limit = scenario_.rules()[static_cast<std::size_t>(rule)].limit;
    std::vector<Admission> by_store;
    std::vector<std::vector<Admission>> by_process(static_cast<std::size_t>(scenario_.processes()));
    for (const Asked& asked : scenario_.asked()) {
      if (!asked.group.decision.allowed || asked.answers == 0) continue;
      for (std::size_t i = 0; i < asked.parts.size(); ++i) {
        if (asked.parts[i].rule != rule || asked.parts[i].key != key) continue;
        if (asked.fate == Fate::kDecided) {
          by_store.push_back(AdmissionOf(asked, i, true));
        } else {
          by_process[static_cast<std::size_t>(asked.process)].push_back(
              AdmissionOf(asked, i, false));
        }
      }
    }
    std::ranges::sort(by_store, {}, &Admission::at);
    const std::string which = " of " + scenario_.rules()[static_cast<std::size_t>(rule)].name +
                              ", " + scenario_.keys()[static_cast<std::size_t>(key)];
    PromiseTerms terms{.lapses = lapses_,
                       .given_back = GivenBackOf(rule, key, true),
                       .jumps = jumps_,
                       .steps_back = steps_back_};
    const bool has_splits =
        std::ranges::any_of(by_store, [](const Admission& it) { return it.earliest != it.latest; });
    terms.is_dated = !moves_clock_ && !has_splits;
    if (const auto found = FindExcess(limit, by_store, terms)) Say("I1", *found + which);
    if (moves_clock_ && limit.algorithm() == Algorithm::kFixedWindow) {
      const auto found = FindGainByStepBack(limit, by_store, TouchesOf(rule, key), terms);
      if (found) Say("I1", *found + which);
    }
    JudgeShares(rule, by_process, GivenBackOf(rule, key, false), which);
    JudgeDenials(rule, key, which);
  }

  // Everything that may have reached a fixed window.
  std::vector<Touch> TouchesOf(int rule, int key) const {
    const Limit& limit = scenario_.rules()[static_cast<std::size_t>(rule)].limit;
    std::vector<Touch> touches;
    for (const Asked& asked : scenario_.asked()) {
      for (std::size_t i = 0; i < asked.parts.size(); ++i) {
        if (asked.parts[i].rule != rule || asked.parts[i].key != key) continue;
        const bool is_nothing = asked.fate == Fate::kFailed && !asked.is_split;
        if (asked.fate == Fate::kNotAsked || is_nothing) continue;
        Touch touch{.asked = asked.at};
        if (asked.fate == Fate::kDecided) touch.answered = asked.answered;
        if (asked.fate == Fate::kDecided && (!asked.is_split || asked.group.decision.allowed)) {
          touch.window = WindowAt(limit.spec(), TimeInStore(asked, i));
        }
        touches.push_back(touch);
        if (asked.afterwards == nullptr) continue;
        const Effect effect = EffectInStore(asked, i, true);
        touches.push_back({.asked = effect.sent, .answered = effect.ended});
      }
    }
    return touches;
  }

  // What each process let through by itself is within its share.
  void JudgeShares(int rule, const std::vector<std::vector<Admission>>& by_process,
                   const std::vector<GivenBack>& given_back, const std::string& which) {
    const RuleUnderTest& guarded = scenario_.rules()[static_cast<std::size_t>(rule)];
    if (guarded.mode != FailureMode::kStatic || scenario_.counts_fleet()) return;
    if (guarded.limit.algorithm() == Algorithm::kConcurrency) return;
    const Limit share = ShareOf(guarded.limit, scenario_.processes());
    for (const std::vector<Admission>& admissions : by_process) {
      if (const auto found = FindExcess(share, admissions, {.given_back = given_back})) {
        Say("I1", "by its share: " + *found + which);
      }
    }
  }

  // Whether every denial by the store can be accounted for.
  void JudgeDenials(int rule, int key, const std::string& which) {
    if (moves_clock_) return;
    const Limit& limit = scenario_.rules()[static_cast<std::size_t>(rule)].limit;
    std::vector<Admission> charged;
    struct Perhaps {
      Duration from;
      Duration to;
      std::int64_t cost;
    };
    std::vector<Perhaps> unknown;
    for (const Asked& asked : scenario_.asked()) {
      for (std::size_t i = 0; i < asked.parts.size(); ++i) {
        if (asked.parts[i].rule != rule || asked.parts[i].key != key) continue;
        const bool is_decided = asked.fate == Fate::kDecided;
        const bool may_be_held = asked.is_split && !asked.group.decision.allowed;
        if (asked.fate == Fate::kUnknown || may_be_held ||
            (asked.is_split && asked.fate == Fate::kFailed)) {
          unknown.push_back({asked.at, Duration::max(), asked.parts[i].cost});
        } else if (is_decided && asked.group.decision.allowed) {
          Admission admission = AdmissionOf(asked, i, true);
          admission.live_until = admission.at + limit.spec().lease + milliseconds(1);
          // That it was given back may have been forgotten.
          if (!forgets_) {
            admission.live_until = std::min(admission.live_until, KnownSettled(asked));
          }
          charged.push_back(admission);
          // Until it is known to have been charged it may have been.
          unknown.push_back({asked.at, admission.at, asked.parts[i].cost});
          // What was given back is left aside; what was charged besides is not.
          if (const Effect effect = EffectInStore(asked, i, IsLossy()); effect.most > 0) {
            const Duration end = effect.is_certain() ? effect.ended : Duration::max();
            unknown.push_back({effect.sent, end, effect.most});
            if (end == Duration::max()) continue;
            charged.push_back({.at = end, .asked = end, .answered = end, .cost = effect.most});
          }
        }
      }
    }
    std::ranges::sort(charged, {}, &Admission::at);
    for (const Asked& asked : scenario_.asked()) {
      // Of several charges any may have been the one; of those in several places too much is
      // remembered elsewhere.
      if (asked.fate != Fate::kDecided || asked.group.decision.allowed) continue;
      if (asked.parts.size() != 1 || asked.parts[0].rule != rule || asked.parts[0].key != key) {
        continue;
      }
      std::int64_t may_be = 0;
      const Duration at = scenario_.ToWorld(asked.group.decided_at);
      for (const Perhaps& it : unknown) may_be += it.from <= at && at < it.to ? it.cost : 0;
      if (!MayDeny(limit, charged, may_be, at, asked.parts[0].cost, scenario_.ServerOffset())) {
        Say("I2", "denied without need" + which + At(asked));
      }
    }
  }

  void JudgeLedgers() {
    for (const Scenario::LedgerEntry& entry : scenario_.ledger()) {
      const std::string key = scenario_.keys()[static_cast<std::size_t>(entry.key)];
      if (!entry.charged) {
        Say("I7", "the ledger of " + key + " could not be read");
        continue;
      }
      std::vector<LedgerLine> lines;
      std::int64_t unknown = 0;
      for (const Asked& asked : scenario_.asked()) {
        for (std::size_t i = 0; i < asked.parts.size(); ++i) {
          const Part& part = asked.parts[i];
          if (part.rule != entry.rule || part.key != entry.key) continue;
          if (asked.fate == Fate::kDecided && asked.group.decision.allowed) {
            lines.push_back({.cost = part.cost,
                             .date = TimeInStore(asked, i),
                             .effect = EffectInStore(asked, i, IsLossy())});
          } else if (asked.fate == Fate::kUnknown || asked.is_split) {
            // What a part took is given back, unless that is lost.
            unknown += part.cost;
          }
        }
      }
      JudgeLedger(entry, lines, unknown);
    }
  }

  void JudgeLedger(const Scenario::LedgerEntry& entry, const std::vector<LedgerLine>& lines,
                   std::int64_t unknown) {
    const Limit& limit = scenario_.rules()[static_cast<std::size_t>(entry.rule)].limit;
    const bool is_log = limit.algorithm() == Algorithm::kSlidingLog && !IsLossy();
    const LedgerBounds bounds = is_log ? BoundsOfLog(lines, unknown) : BoundsOfSums(lines, unknown);
    const std::string figures =
        std::to_string(*entry.charged) + " charged, from " + std::to_string(bounds.least) + " to " +
        std::to_string(bounds.most) + " let through, " + std::to_string(unknown) + " unknown, " +
        scenario_.keys()[static_cast<std::size_t>(entry.key)];
    if (*entry.charged > bounds.most) Say("I8", "too much: " + figures);
    if (!IsLossy() && *entry.charged < bounds.least) Say("I8", "too little: " + figures);
  }

  void JudgeFleet() {
    if (scenario_.IsDegraded()) Say("I7", "still thinks that the store fails");
    if (moves_clock_) return;
    for (const int size : scenario_.fleet_sizes()) {
      if (size != scenario_.processes()) Say("I7", "counts " + std::to_string(size) + " processes");
    }
  }

  const Scenario& scenario_;
  std::vector<Lapse> lapses_;
  std::vector<Duration> jumps_;
  std::vector<Duration> steps_back_;
  bool forgets_ = false;
  bool moves_clock_ = false;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> Judge(const Scenario& scenario) { return Trial(scenario).Verdict(); }

}  // namespace weir::simulation
