// Of every rule and key: whether too much was let through.
#include <algorithm>
#include <set>

#include "lab/fleet/intervals.h"
#include "lab/fleet/judge.h"
#include "lab/fleet/judge_denials.h"
#include "lab/fleet/judge_evidence.h"
#include "sim/fixed_windows.h"
#include "sim/promise.h"
#include "store/guard/share.h"

namespace weir::lab {
namespace {

using sim::Admission;
using sim::PromiseTerms;

class TrackTrial {
 public:
  TrackTrial(const Evidence& evidence, Verdict& verdict)
      : evidence_(evidence), record_(evidence.record()), verdict_(verdict) {}

  void Judge() {
    for (track_ = 0; track_ < evidence_.tracks(); ++track_) {
      std::set<int> limits;
      for (const Seen& it : evidence_.SeenOf(track_)) limits.insert(it.use->limit);
      for (const int limit : limits) {
        if (CanBeJudged(evidence_.LimitAt(limit))) JudgeLimit(limit);
      }
    }
  }

 private:
  void JudgeLimit(int number) {
    const Limit& limit = evidence_.LimitAt(number);
    std::vector<Admission> by_store;
    std::vector<std::vector<Admission>> by_node(record_.node_notes.size());
    for (const Seen& it : evidence_.SeenOf(track_)) {
      if (it.use->limit != number || !it.is_let_through()) continue;
      if (it.asked->fate == Fate::kDecided) {
        by_store.push_back(evidence_.ByStore(it));
      } else if (it.use->source == Source::kFallback || it.use->source == Source::kMemory) {
        by_node[static_cast<std::size_t>(it.asked->node)].push_back(evidence_.ByNode(it));
      }
    }
    if (record_.is_shared()) {
      JudgeStore(limit, number, std::move(by_store));
      JudgeShares(limit, number, by_node);
    }
    for (int node = 0; node < record_.nodes && !record_.is_shared(); ++node) {
      JudgeNode(limit, node, by_node[static_cast<std::size_t>(node)], "");
    }
  }

  static bool IsInChange(const Admission& it, const Change& change) {
    return change.is_mixed() && change.begins <= it.answered && it.asked <= change.ends;
  }

  // What was let through while nodes had different limits is left aside; before and after, it is
  // not; across, there may be one burst more.
  void JudgeStore(const Limit& limit, int number, std::vector<Admission> by_store) {
    PromiseTerms terms = evidence_.store_terms();
    for (const Change& change : evidence_.ChangesOf(track_)) {
      std::erase_if(by_store, [&](const Admission& it) { return IsInChange(it, change); });
      terms.lapses.push_back(change.lapse());
    }
    terms.is_dated = true;
    Say(FindAnyExcess(limit, by_store, terms), by_store.size(), "");
    if (!evidence_.moves_server_clock() || limit.algorithm() != Algorithm::kFixedWindow) return;
    std::vector<sim::Touch> touches;
    for (const Seen& it : evidence_.SeenOf(track_)) {
      if (it.use->limit != number || it.asked->fate == Fate::kNotAsked) continue;
      sim::Touch touch{.asked = it.asked->at};
      if (it.is_decided()) touch.answered = it.asked->answered;
      if (it.is_decided() && !it.asked->is_split) {
        touch.window = sim::WindowAt(limit.spec(), it.asked->decided_at);
      }
      touches.push_back(touch);
    }
    Say(FindGainByStepBack(limit, by_store, touches, terms), by_store.size(), "");
  }

  // What each node let through by itself is within its share.
  void JudgeShares(const Limit& limit, int number,
                   const std::vector<std::vector<Admission>>& by_node) {
    if (limit.algorithm() == Algorithm::kConcurrency) return;
    for (int node = 0; node < record_.nodes; ++node) {
      const std::vector<Admission>& admissions = by_node[static_cast<std::size_t>(node)];
      if (admissions.empty()) continue;
      const Count count =
          record_.fleet_size == 0 ? CountOf(node, number) : Count{.smallest = record_.fleet_size};
      if (count.smallest < 1) continue;
      JudgeNode(ShareOf(limit, count.smallest), node, admissions, "by its share: ", count.changes);
    }
  }

  // What a node took the fleet for when it decided by its share.
  struct Count {
    int smallest = 0;
    std::vector<sim::Lapse> changes{};
  };

  // Where it counts, and counts another number than before, what is used of its share is that part
  // of another; more than one share more that cannot be.
  Count CountOf(int node, int number) const {
    Count count;
    int last = 0;
    for (const Seen& it : evidence_.SeenOf(track_)) {
      const int its = it.asked->fleet_size;
      if (it.asked->node != node || it.use->limit != number || its == 0) continue;
      if (last != 0 && its != last) count.changes.push_back({it.asked->at, it.asked->answered});
      count.smallest = count.smallest == 0 ? its : std::min(count.smallest, its);
      last = its;
    }
    return count;
  }

  void JudgeNode(const Limit& limit, int node, const std::vector<Admission>& admissions,
                 const std::string& how, const std::vector<sim::Lapse>& changes = {}) {
    if (admissions.empty()) return;
    PromiseTerms terms = evidence_.TermsOf(node);
    terms.lapses.insert(terms.lapses.end(), changes.begin(), changes.end());
    terms.is_dated = true;
    for (const Change& change : evidence_.ChangesOf(track_, node)) {
      terms.lapses.push_back(change.lapse());
    }
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
    if (found) verdict_.Break(1, how + *found + evidence_.Which(track_));
  }

  const Evidence& evidence_;
  const Record& record_;
  Verdict& verdict_;
  std::size_t track_ = 0;
};

}  // namespace

void JudgeTracks(const Record& record, Verdict& verdict) {
  const Evidence evidence(record);
  TrackTrial(evidence, verdict).Judge();
  JudgeDenials(evidence, verdict);
}

}  // namespace weir::lab
