#include "lab/fleet/judge_evidence.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/fixed_windows.h"
#include "sim/sim_loop.h"

namespace weir::lab {
namespace {

using sim::Admission;
using sim::PromiseTerms;
using std::chrono::seconds;

// What waits in the queue of a slow server, or is under way for long, may come at any time after.
bool MayOutlast(const FaultNote& fault) {
  return fault.name == sim::TraitsOf(sim::FaultKind::kSlow).name || fault.slows_by > seconds(1);
}

bool MovesKeys(const FaultNote& fault) {
  return fault.name == sim::TraitsOf(sim::FaultKind::kFailover).name ||
         fault.name == sim::TraitsOf(sim::FaultKind::kSlotsMove).name;
}

}  // namespace

bool IsBucketLimit(const Limit& limit) {
  return limit.algorithm() == Algorithm::kTokenBucket ||
         limit.algorithm() == Algorithm::kLeakyBucket;
}

bool CanBeJudged(const Limit& limit) {
  return limit.kind() == LimitKind::kCounted && !limit.spec().overdraft &&
         limit.spec().align == Align::kEpoch;
}

bool GoesByCalendar(const Limit& limit) {
  return limit.algorithm() == Algorithm::kFixedWindow ||
         limit.algorithm() == Algorithm::kSlidingWindow;
}

Evidence::Evidence(const Record& record)
    : record_(record), node_terms_(record.node_notes.size()), seen_(record.tracks.size()) {
  for (const FaultNote& fault : record.faults) {
    PromiseTerms& terms =
        fault.node ? node_terms_[static_cast<std::size_t>(*fault.node)] : store_terms_;
    if (fault.forgets) terms.lapses.push_back({fault.begins, fault.ends});
    if (!fault.moves_clock) continue;
    // A clock jumps twice: there and back.
    terms.jumps.insert(terms.jumps.end(), {fault.begins, fault.ends});
    terms.steps_back.push_back(fault.moves_clock_back ? fault.begins : fault.ends);
  }
  for (const FaultNote& fault : record.faults) {
    // To a key that goes to a server with another clock that is a jump.
    if (fault.forgets || !MovesKeys(fault) || !IsClockMoved(fault.begins, fault.ends)) continue;
    store_terms_.lapses.push_back({fault.begins, fault.ends});
  }
  std::ranges::sort(store_terms_.steps_back);
  for (PromiseTerms& terms : node_terms_) std::ranges::sort(terms.steps_back);
  for (const Asked& asked : record.asked) {
    for (const Use& use : asked.uses) {
      seen_[static_cast<std::size_t>(use.track)].push_back({&asked, &use});
    }
  }
}

std::string Evidence::Which(std::size_t track) const {
  return " of " + record_.tracks[track].rule + ", " + record_.tracks[track].key;
}

bool Evidence::IsClockMoved(Duration first, Duration last) const {
  return std::ranges::any_of(record_.faults, [&](const FaultNote& fault) {
    return fault.moves_clock && !fault.node && fault.begins <= last && first <= fault.ends;
  });
}

bool Evidence::MayKeysMove(Duration first, Duration last) const {
  return std::ranges::any_of(record_.faults, [&](const FaultNote& fault) {
    return MovesKeys(fault) && fault.begins <= last && first <= fault.ends;
  });
}

Duration Evidence::NodeTime(int node, Duration world) const {
  return world + world / 1'000'000 * record_.node_notes[static_cast<std::size_t>(node)].drift_ppm;
}

Duration Evidence::NodeOffset(int node) const {
  return record_.node_notes[static_cast<std::size_t>(node)].wall_offset;
}

Duration Evidence::StoreTime(const Asked& asked) const {
  return asked.decided_at - sim::SimLoop::Beginning() - record_.server_offset;
}

Admission Evidence::ByStore(const Seen& it) const {
  const Limit& limit = LimitAt(it.use->limit);
  Admission admission{.delay = it.use->delay,
                      .asked = it.asked->at,
                      .answered = it.asked->answered,
                      .cost = it.use->cost};
  if (it.asked->is_split || IsClockMoved(it.asked->at, it.asked->answered)) {
    // Parts of a group are decided at different times; and of a clock that was moved nobody knows
    // by how much.
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

Admission Evidence::ByNode(const Seen& it) const {
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

Duration Evidence::LatestEffect(const Asked& asked) const {
  const bool is_decided = asked.fate == Fate::kDecided && !asked.is_lost;
  // Of a group on several servers that one of them denied, parts may still be under way.
  if (is_decided && (asked.allowed || !asked.is_split)) return asked.answered;
  // Nothing is under way for longer than the timeout where calls get through at all.
  const Duration settles = std::max<Duration>(seconds(2), record_.timeout);
  const Duration told = std::max(asked.answered, asked.at + record_.timeout);
  Duration latest = told;
  bool is_explained = is_decided;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const FaultNote& fault : record_.faults) {
      if (fault.begins > latest + settles || fault.ends + settles < asked.at) continue;
      if (MayOutlast(fault)) return Duration::max();
      is_explained |= !fault.is_harmless && fault.begins <= told;
      goes_on |= fault.ends > latest;
      latest = std::max(latest, fault.ends);
    }
  }
  return is_explained ? latest + settles : Duration::max();
}

std::vector<Change> Evidence::ChangesOf(std::size_t track, std::optional<int> node) const {
  std::vector<const Seen*> calls;
  for (const Seen& it : seen_[track]) {
    if (!node || it.asked->node == *node) calls.push_back(&it);
  }
  // They stand in one vector, so of the same moment the first comes first.
  std::ranges::sort(calls, {}, [](const Seen* it) { return std::pair(it->asked->at, it); });
  const auto disagreement_at = [&](Duration at) {
    return std::ranges::find_if(record_.disagreements, [&](const Disagreement& it) {
      return it.begins <= at && at <= it.ends;
    });
  };
  std::vector<Change> changes;
  auto last = record_.disagreements.end();  // That of the last change.
  std::map<int, Duration> in_force_until;   // By limit.
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Asked& asked = *calls[i]->asked;
    const int limit = calls[i]->use->limit;
    Change change{asked.at, asked.at};
    for (const auto& [other, until] : in_force_until) {
      if (other != limit) change.ends = std::max(change.ends, until);
    }
    if (i > 0 && calls[i - 1]->use->limit != limit) {
      const auto its = node ? record_.disagreements.end() : disagreement_at(asked.at);
      if (its != record_.disagreements.end() && its == last) {
        changes.back().ends = std::max(changes.back().ends, change.ends);
      } else {
        // Where nothing crossed, who comes with the new limit comes after it.
        if (!change.is_mixed()) change.begins = change.ends = asked.at - Duration(1);
        changes.push_back(change);
      }
      last = its;
    }
    const Duration until = calls[i]->is_unknown() ? LatestEffect(asked) : asked.answered;
    in_force_until[limit] = std::max(in_force_until[limit], until);
  }
  return changes;
}

}  // namespace weir::lab
