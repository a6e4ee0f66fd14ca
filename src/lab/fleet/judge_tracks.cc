// Of every rule and key: whether too much was let through, whether what was denied had to be, and
// whether what is left agrees with both.
#include <algorithm>
#include <cmath>
#include <set>

#include "lab/fleet/intervals.h"
#include "lab/fleet/judge.h"
#include "lab/fleet/usage.h"
#include "sim/fixed_windows.h"
#include "sim/promise.h"
#include "sim/sim_loop.h"
#include "store/guard/share.h"

namespace weir::lab {
namespace {

using sim::Admission;
using sim::PromiseTerms;
using std::chrono::milliseconds;
using std::chrono::seconds;

// One request as a track sees it.
struct Seen {
  const Asked* asked;
  const Use* use;

  bool is_answered() const { return asked->answers > 0; }
  bool is_charged() const {
    return is_answered() && asked->allowed && (use->allowed || !use->is_shadow);
  }
  // A shadow that is over its limit takes nothing.
  bool is_let_through() const {
    return is_answered() && asked->allowed && (!use->is_shadow || use->allowed);
  }
  // Nobody was told whether the store took it.
  bool is_unknown() const {
    return asked->is_lost || asked->fate == Fate::kUnknown ||
           (asked->is_split && (asked->fate == Fate::kFailed || !asked->allowed));
  }
};

bool IsBucket(const Limit& limit) {
  return limit.algorithm() == Algorithm::kTokenBucket ||
         limit.algorithm() == Algorithm::kLeakyBucket;
}

bool CanBeJudged(const Limit& limit) {
  return limit.kind() == LimitKind::kCounted && !limit.spec().overdraft &&
         limit.spec().align == Align::kEpoch;
}

// By the calendar rather than by a clock that only goes forward.
bool GoesByCalendar(const Limit& limit) {
  return limit.algorithm() == Algorithm::kFixedWindow ||
         limit.algorithm() == Algorithm::kSlidingWindow;
}

Admission Least(const Admission& it) {
  Admission least = it;
  least.at = it.earliest;
  return least;
}

class TrackTrial {
 public:
  TrackTrial(const Record& record, Verdict& verdict)
      : record_(record), verdict_(verdict), node_terms_(record.node_notes.size()) {
    for (const FaultNote& fault : record.faults) {
      PromiseTerms& terms =
          fault.node ? node_terms_[static_cast<std::size_t>(*fault.node)] : store_terms_;
      if (fault.forgets) terms.lapses.push_back({fault.begins, fault.ends});
      if (!fault.moves_clock) continue;
      // A clock jumps twice: there and back.
      terms.jumps.insert(terms.jumps.end(), {fault.begins, fault.ends});
      terms.steps_back.push_back(fault.moves_clock_back ? fault.begins : fault.ends);
    }
    for (const Disagreement& it : record.disagreements) changes_.push_back({it.begins, it.ends});
    std::ranges::sort(store_terms_.steps_back);
    for (PromiseTerms& terms : node_terms_) std::ranges::sort(terms.steps_back);
    seen_.resize(record.tracks.size());
    for (const Asked& asked : record.asked) {
      for (const Use& use : asked.uses) {
        seen_[static_cast<std::size_t>(use.track)].push_back({&asked, &use});
      }
    }
  }

  void Judge() {
    for (track_ = 0; track_ < seen_.size(); ++track_) {
      std::set<int> limits;
      for (const Seen& it : seen_[track_]) limits.insert(it.use->limit);
      is_steady_ = limits.size() == 1;
      for (const int limit : limits) JudgeLimit(limit);
    }
    for (const LedgerNote& note : record_.ledger) JudgeLedger(note);
  }

 private:
  const Limit& LimitAt(int number) const {
    return record_.limits[static_cast<std::size_t>(number)].limit;
  }
  std::string Which(std::size_t track) const {
    return " of " + record_.tracks[track].rule + ", " + record_.tracks[track].key;
  }
  bool moves_server_clock() const { return !store_terms_.jumps.empty(); }
  const PromiseTerms& TermsOf(int node) const {
    return node_terms_[static_cast<std::size_t>(node)];
  }
  // What the steady clock of a node showed.
  Duration NodeTime(int node, Duration world) const {
    return world + world / 1'000'000 * record_.node_notes[static_cast<std::size_t>(node)].drift_ppm;
  }
  Duration NodeOffset(int node) const {
    return record_.node_notes[static_cast<std::size_t>(node)].wall_offset;
  }
  Duration StoreTime(const Asked& asked) const {
    return asked.decided_at - sim::SimLoop::Beginning() - record_.server_offset;
  }

  Admission ByStore(const Seen& it) const {
    const Limit& limit = LimitAt(it.use->limit);
    Admission admission{.delay = it.use->delay,
                        .asked = it.asked->at,
                        .answered = it.asked->answered,
                        .cost = it.use->cost};
    if (moves_server_clock() || it.asked->is_split) {
      // Parts of a group are decided at different times.
      admission.earliest = it.asked->at;
      admission.at = admission.latest = it.asked->answered;
    } else {
      admission.at = admission.earliest = admission.latest = StoreTime(*it.asked);
    }
    if (limit.algorithm() == Algorithm::kFixedWindow && !it.asked->is_split) {
      admission.window = sim::WindowAt(limit.spec(), it.asked->decided_at);
    }
    admission.live_until = std::min(admission.earliest + limit.spec().lease, it.asked->released);
    return admission;
  }

  Admission ByNode(const Seen& it) const {
    const Limit& limit = LimitAt(it.use->limit);
    const int node = it.asked->node;
    const Duration at = NodeTime(node, it.asked->answered);
    Admission admission{.at = at,
                        .delay = it.use->delay,
                        .earliest = at,
                        .latest = at,
                        .asked = it.asked->at,
                        .answered = it.asked->answered,
                        .cost = it.use->cost};
    if (limit.algorithm() == Algorithm::kFixedWindow && TermsOf(node).jumps.empty()) {
      admission.window =
          sim::WindowAt(limit.spec(), sim::SimLoop::Beginning() + at + NodeOffset(node));
    }
    admission.live_until = at + limit.spec().lease;
    if (it.asked->released != Duration::max()) {
      admission.live_until = std::min(admission.live_until, NodeTime(node, it.asked->released));
    }
    return admission;
  }

  void JudgeLimit(int number) {
    const Limit& limit = LimitAt(number);
    if (!CanBeJudged(limit)) return;
    std::vector<Admission> by_store;
    std::vector<std::vector<Admission>> by_node(node_terms_.size());
    for (const Seen& it : seen_[track_]) {
      if (it.use->limit != number || !it.is_let_through()) continue;
      if (it.asked->fate == Fate::kDecided) {
        by_store.push_back(ByStore(it));
      } else if (it.use->source == Source::kFallback || it.use->source == Source::kMemory) {
        by_node[static_cast<std::size_t>(it.asked->node)].push_back(ByNode(it));
      }
    }
    if (record_.is_shared()) {
      if (HasMixedLimits())
        std::erase_if(by_store, [&](const Admission& it) { return IsInChange(it); });
      JudgeStore(limit, number, by_store);
      JudgeShares(limit, by_node);
    }
    for (int node = 0; node < record_.nodes && !record_.is_shared(); ++node) {
      JudgeNode(limit, node, by_node[static_cast<std::size_t>(node)], "");
    }
    JudgeDenials(limit, number);
  }

  // While nodes have different limits for a key they share, each makes of its state what its own
  // limit says, again and again: what is let through then is bound by neither. Before and after, it
  // is; across, with one burst more.
  bool HasMixedLimits() const { return !is_steady_ && record_.nodes > 1; }
  bool IsInChange(const Admission& it) const {
    return std::ranges::any_of(changes_, [&](const sim::Lapse& change) {
      return change.begins <= it.answered && it.asked <= change.ends;
    });
  }

  void JudgeStore(const Limit& limit, int number, const std::vector<Admission>& by_store) {
    PromiseTerms terms = store_terms_;
    if (HasMixedLimits()) {
      terms.lapses.insert(terms.lapses.end(), changes_.begin(), changes_.end());
    }
    terms.is_dated =
        !moves_server_clock() &&
        std::ranges::all_of(by_store, [](const Admission& it) { return it.earliest == it.latest; });
    Say(FindAnyExcess(limit, by_store, terms), by_store.size(), "");
    if (!moves_server_clock() || limit.algorithm() != Algorithm::kFixedWindow) return;
    std::vector<sim::Touch> touches;
    for (const Seen& it : seen_[track_]) {
      if (it.use->limit != number || it.asked->fate == Fate::kNotAsked) continue;
      sim::Touch touch{.asked = it.asked->at};
      const bool is_told = it.asked->fate == Fate::kDecided && it.is_answered();
      if (is_told) touch.answered = it.asked->answered;
      if (is_told && !it.asked->is_split) {
        touch.window = sim::WindowAt(limit.spec(), it.asked->decided_at);
      }
      touches.push_back(touch);
    }
    Say(FindGainByStepBack(limit, by_store, touches, terms), by_store.size(), "");
  }

  // What each node let through by itself is within its share.
  void JudgeShares(const Limit& limit, const std::vector<std::vector<Admission>>& by_node) {
    if (record_.fleet_size == 0 || limit.algorithm() == Algorithm::kConcurrency) return;
    const Limit share = ShareOf(limit, record_.fleet_size);
    for (int node = 0; node < record_.nodes; ++node) {
      JudgeNode(share, node, by_node[static_cast<std::size_t>(node)], "by its share: ");
    }
  }

  void JudgeNode(const Limit& limit, int node, const std::vector<Admission>& admissions,
                 const std::string& how) {
    PromiseTerms terms = TermsOf(node);
    terms.is_dated = true;
    if (!GoesByCalendar(limit)) {
      terms.jumps.clear();
      terms.steps_back.clear();
    }
    // Of windows on a calendar that was moved nobody knows which it was.
    if (limit.algorithm() == Algorithm::kFixedWindow && !terms.jumps.empty()) return;
    Say(FindAnyExcess(limit, admissions, terms), admissions.size(),
        how + "node " + std::to_string(node + 1) + ": ");
  }

  void Say(const std::optional<std::string>& found, std::size_t admissions,
           const std::string& how) {
    verdict_.Of(1).checked += admissions;
    if (found) verdict_.Break(1, how + *found + Which(track_));
  }

  // --- Denials ---

  // What may have been charged from one moment on, or until another.
  struct Perhaps {
    Duration from;
    Duration to;
    std::int64_t cost;
  };

  // What is known of a track in the store, or in a node.
  struct Knowledge {
    std::vector<Admission> charged{};  // For sure, by `at`.
    std::vector<Perhaps> perhaps{};
  };

  Knowledge KnowledgeOfStore(int number) const {
    Knowledge known;
    const Limit& limit = LimitAt(number);
    for (const Seen& it : seen_[track_]) {
      if (it.use->limit != number) continue;
      if (it.is_unknown()) {
        known.perhaps.push_back({it.asked->at, Duration::max(), it.use->cost});
      } else if (it.asked->fate == Fate::kDecided && it.is_charged()) {
        Admission admission = ByStore(it);
        admission.live_until = admission.at + limit.spec().lease + milliseconds(1);
        if (store_terms_.lapses.empty()) {
          admission.live_until = std::min(admission.live_until, it.asked->known_released);
        }
        known.charged.push_back(admission);
        // Until it is known to have been charged it may have been.
        known.perhaps.push_back({it.asked->at, admission.at, it.use->cost});
      }
    }
    std::ranges::sort(known.charged, {}, &Admission::at);
    return known;
  }

  Knowledge KnowledgeOfNode(int number, int node) const {
    Knowledge known;
    for (const Seen& it : seen_[track_]) {
      if (it.use->limit != number || it.asked->node != node || !it.is_charged()) continue;
      Admission admission = ByNode(it);
      admission.live_until += milliseconds(1);
      known.charged.push_back(admission);
    }
    std::ranges::sort(known.charged, {}, &Admission::at);
    return known;
  }

  void JudgeDenials(const Limit& limit, int number) {
    if (!is_steady_) return;
    std::vector<const Seen*> by_store;
    std::vector<std::vector<const Seen*>> by_node(node_terms_.size());
    for (const Seen& it : seen_[track_]) {
      if (!it.is_answered() || it.use->allowed) continue;
      if (it.use->reason == Reason::kNeverFits) {
        verdict_.Check(2, it.use->cost > limit.capacity(), [&] {
          return "denied for ever, though it fits" + Which(track_) + " " + AskedAt(*it.asked);
        });
      }
      if (it.use->reason != Reason::kLimited) continue;
      if (it.use->source == Source::kStore && !it.asked->is_split) {
        by_store.push_back(&it);
      } else if (it.use->source == Source::kFallback || it.use->source == Source::kMemory) {
        by_node[static_cast<std::size_t>(it.asked->node)].push_back(&it);
      }
    }
    if (!by_store.empty()) {
      const Knowledge known = KnowledgeOfStore(number);
      if (!moves_server_clock()) {
        JudgeStoreDenials(limit, known, std::move(by_store));
      } else if (IsBucket(limit)) {
        JudgeDenialsAfterSteps(limit, known, std::move(by_store));
      }
    }
    for (int node = 0; node < record_.nodes; ++node) {
      JudgeNodeDenials(limit, number, node, by_node[static_cast<std::size_t>(node)]);
    }
  }

  void CheckDenial(const Limit& limit, const Seen& it, double used) {
    const LimitSpec& spec = limit.spec();
    const auto room = static_cast<double>(limit.capacity() + (spec.queue ? 1 : 0));
    const double wanted = used + static_cast<double>(std::max<std::int64_t>(it.use->cost, 1));
    verdict_.Check(2, wanted > room - 1e-3, [&] {
      return "denied without need, " + std::to_string(used) + " of " +
             std::to_string(limit.capacity()) + " used" + Which(track_) + " " + AskedAt(*it.asked);
    });
  }

  void JudgeStoreDenials(const Limit& limit, const Knowledge& known,
                         std::vector<const Seen*> denials) {
    const auto when = [&](const Seen* it) { return StoreTime(*it->asked); };
    std::ranges::sort(denials, {}, when);
    Usage usage(limit, record_.server_offset);
    SumOverTime perhaps;
    for (const Perhaps& it : known.perhaps) perhaps.Add(it.from, it.to, it.cost);
    std::size_t next = 0;
    for (const Seen* const it : denials) {
      const Duration at = when(it);
      for (; next < known.charged.size() && known.charged[next].at <= at; ++next) {
        usage.Add(known.charged[next].at, known.charged[next].cost, known.charged[next].live_until);
      }
      CheckDenial(limit, *it, usage.Most(at) + static_cast<double>(perhaps.At(at)));
    }
  }

  // A clock that was set back may leave a bucket further ahead than it can be, until it is looked
  // at again: then it is as far ahead as the limit allows. From there it drains as ever.
  void JudgeDenialsAfterSteps(const Limit& limit, const Knowledge& known,
                              std::vector<const Seen*> denials) {
    const double rate =
        static_cast<double>(limit.spec().count) / static_cast<double>(limit.spec().period.count());
    const double furthest =
        static_cast<double>(limit.furthest()) / static_cast<double>(limit.emission_interval());
    std::ranges::sort(denials, {}, [](const Seen* it) { return it->asked->answered; });
    SumBetween perhaps;
    for (const Perhaps& it : known.perhaps) perhaps.Add(it.from, it.to, it.cost);
    Duration since(-1);  // The jump that all of these follow.
    std::optional<Duration> mended;
    double filled = 0;
    Duration last{0};
    std::size_t next = 0;
    for (const Seen* const it : denials) {
      const Duration from = LastJumpBefore(it->asked->at);
      if (from < Duration(0) || LastJumpBefore(it->asked->answered) != from) continue;
      if (from != since) {
        since = from;
        mended = FirstAnswerAfter(from);
        filled = furthest + 1;
        last = mended.value_or(from);
        next = 0;
      }
      if (!mended || *mended > it->asked->at) continue;  // The first who asked.
      // All are known by when they were answered.
      for (; next < known.charged.size() && known.charged[next].answered <= it->asked->answered;
           ++next) {
        const Admission& charge = known.charged[next];
        if (charge.asked < from) continue;
        const Duration at = std::max(charge.at, last);
        filled = std::max(0.0, filled - rate * static_cast<double>((at - last).count()));
        filled += static_cast<double>(charge.cost);
        last = at;
      }
      const Duration passed = std::max(it->asked->at - last, Duration(0));
      const double level =
          std::max(0.0, filled - rate * static_cast<double>(passed.count()) * (1 - 1e-6));
      const std::int64_t unknown = perhaps.Within(it->asked->at, it->asked->answered);
      CheckDenial(limit, *it, level + static_cast<double>(unknown));
    }
  }

  // Less than nothing if there was none.
  Duration LastJumpBefore(Duration at) const {
    Duration last(-1);
    for (const Duration jump : store_terms_.jumps) {
      if (jump <= at) last = std::max(last, jump);
    }
    return last;
  }

  // When the first call after a jump had been answered.
  std::optional<Duration> FirstAnswerAfter(Duration jump) const {
    std::optional<Duration> first;
    for (const Seen& it : seen_[track_]) {
      if (it.asked->at < jump || it.asked->fate != Fate::kDecided || !it.is_answered()) continue;
      if (it.asked->is_split) continue;
      if (!first || it.asked->answered < *first) first = it.asked->answered;
    }
    return first;
  }

  void JudgeNodeDenials(const Limit& limit, int number, int node,
                        std::vector<const Seen*>& denials) {
    if (denials.empty() || (record_.is_shared() && record_.fleet_size == 0)) return;
    if (GoesByCalendar(limit) && !TermsOf(node).jumps.empty()) return;
    const Limit share = record_.is_shared() ? ShareOf(limit, record_.fleet_size) : limit;
    // What is given back in the store is given back here as well, at its own time.
    if (limit.algorithm() == Algorithm::kConcurrency) return;
    const auto when = [&](const Seen* it) { return NodeTime(node, it->asked->answered); };
    std::ranges::sort(denials, {}, when);
    const Knowledge known = KnowledgeOfNode(number, node);
    Usage usage(share, NodeOffset(node));
    std::size_t next = 0;
    for (const Seen* const it : denials) {
      const Duration at = when(it);
      for (; next < known.charged.size() && known.charged[next].at <= at; ++next) {
        usage.Add(known.charged[next].at, known.charged[next].cost);
      }
      CheckDenial(share, *it, usage.Most(at));
    }
  }

  // --- What is left ---

  void JudgeLedger(const LedgerNote& note) {
    track_ = static_cast<std::size_t>(note.track);
    const Limit& limit = LimitAt(note.limit);
    if (!CanBeJudged(limit)) return;
    const bool is_well = record_.ended >= record_.healed + seconds(2);
    if (is_well) {
      verdict_.Check(7, note.used.has_value(),
                     [&] { return "what is left" + Which(track_) + " could not be read"; });
    }
    const auto& seen = seen_[track_];
    const bool is_steady =
        std::ranges::all_of(seen, [&](const Seen& it) { return it.use->limit == note.limit; });
    if (!note.used || !is_steady || limit.algorithm() == Algorithm::kConcurrency) return;
    if (note.node < 0) {
      if (!moves_server_clock()) JudgeLeftInStore(note, limit);
    } else if (!GoesByCalendar(limit) || TermsOf(note.node).jumps.empty()) {
      JudgeLeftInNode(note, limit);
    }
  }

  void JudgeLeftInStore(const LedgerNote& note, const Limit& limit) {
    const Knowledge known = KnowledgeOfStore(note.limit);
    std::int64_t unknown = 0;
    for (const Perhaps& it : known.perhaps) unknown += it.to == Duration::max() ? it.cost : 0;
    CompareLeft(note, limit, known.charged, record_.server_offset, unknown,
                store_terms_.lapses.empty());
  }

  void JudgeLeftInNode(const LedgerNote& note, const Limit& limit) {
    Knowledge known = KnowledgeOfNode(note.limit, note.node);
    // What came before its last start is forgotten.
    for (const sim::Lapse& lapse : TermsOf(note.node).lapses) {
      std::erase_if(known.charged, [&](const Admission& it) { return it.answered <= lapse.ends; });
    }
    LedgerNote by_its_clock = note;
    by_its_clock.at = NodeTime(note.node, note.at);
    CompareLeft(by_its_clock, limit, known.charged, NodeOffset(note.node), 0, true);
  }

  void CompareLeft(const LedgerNote& note, const Limit& limit, std::vector<Admission> charged,
                   Duration wall_offset, std::int64_t unknown, bool is_remembered) {
    Usage at_most(limit, wall_offset);
    for (const Admission& it : charged) at_most.Add(it.at, it.cost);
    std::ranges::transform(charged, charged.begin(), Least);
    std::ranges::sort(charged, {}, &Admission::at);
    Usage at_least(limit, wall_offset);
    for (const Admission& it : charged) at_least.Add(it.at, it.cost);
    const auto used = static_cast<double>(*note.used);
    const double most = std::ceil(at_most.Most(note.at)) + static_cast<double>(unknown);
    // What is above the capacity is not told.
    const double least = std::min(at_least.Least(note.at) - (limit.spec().queue ? 1 : 0),
                                  static_cast<double>(limit.capacity()));
    const auto text = [&](const char* what) {
      return std::string(what) + ": " + std::to_string(*note.used) + " charged, " +
             std::to_string(least) + " to " + std::to_string(most) + " let through, " +
             std::to_string(unknown) + " of them perhaps," + Which(track_) +
             (note.node >= 0 ? ", node " + std::to_string(note.node + 1) : "");
    };
    verdict_.Check(8, used <= most, [&] { return text("too much"); });
    if (is_remembered) verdict_.Check(8, used >= least, [&] { return text("too little"); });
  }

  const Record& record_;
  Verdict& verdict_;
  PromiseTerms store_terms_;
  std::vector<sim::Lapse> changes_;  // Of the policy, from the first node to the last.
  std::vector<PromiseTerms> node_terms_;
  std::vector<std::vector<Seen>> seen_;  // By track.
  std::size_t track_ = 0;
  bool is_steady_ = true;  // One limit all the while.
};

}  // namespace

void JudgeTracks(const Record& record, Verdict& verdict) { TrackTrial(record, verdict).Judge(); }

}  // namespace weir::lab
