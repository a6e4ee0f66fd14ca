#include "lab/fleet/judge_stretches.h"

#include <algorithm>

#include "sim/sim_loop.h"

namespace weir::lab {
namespace {

using sim::Admission;
using std::chrono::milliseconds;

// How long what a window or a log had within bounds may go on to count.
Duration TimeToBeOver(const Limit& limit) {
  const LimitSpec& spec = limit.spec();
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return Duration(0);
    case Algorithm::kFixedWindow:
    case Algorithm::kSlidingLog:
      return 2 * spec.period + milliseconds(2);
    case Algorithm::kSlidingWindow:
      return (spec.strict ? 4 : 3) * spec.period + milliseconds(2);
    case Algorithm::kConcurrency:
      return 2 * spec.lease + milliseconds(2);
  }
  return Duration(0);
}

// In units of this limit, whichever of the track's limits left it.
double FullestBucket(const Evidence& evidence, std::size_t track, const Limit& limit) {
  std::int64_t furthest = limit.furthest();
  for (const Seen& it : evidence.SeenOf(track)) {
    const Limit& other = evidence.LimitAt(it.use->limit);
    if (IsBucketLimit(other)) furthest = std::max(furthest, other.furthest());
  }
  return static_cast<double>(furthest) / static_cast<double>(limit.emission_interval()) + 1;
}

// What is between the cuts.
std::vector<JudgedStretch> CutAt(std::vector<Change> cuts) {
  std::ranges::sort(cuts, {}, &Change::begins);
  std::vector<JudgedStretch> stretches(1);
  for (const Change& cut : cuts) {
    JudgedStretch& last = stretches.back();
    if (cut.begins > last.begins) {
      last.ends = cut.begins;
      stretches.push_back({.begins = cut.ends, .is_first = false});
    } else {
      last.begins = std::max(last.begins, cut.ends);
    }
  }
  return stretches;
}

// The clock of the key's server, by what was decided then. False if it cannot be told.
bool FindOffset(const Evidence& evidence, std::size_t track, JudgedStretch& stretch) {
  if (!evidence.IsClockMoved(stretch.begins + Duration(1), stretch.ends - Duration(1))) {
    stretch.offset = evidence.record().server_offset;
    return true;
  }
  if (evidence.MayKeysMove(stretch.begins, stretch.ends)) return false;
  Duration most = Duration::max();
  Duration least = Duration::min();
  for (const Seen& it : evidence.SeenOf(track)) {
    if (!it.is_decided() || it.asked->is_split || !stretch.Covers(*it.asked)) continue;
    const Duration shown = it.asked->decided_at - sim::SimLoop::Beginning();
    most = std::min(most, shown - it.asked->at);
    least = std::max(least, shown - it.asked->answered);
  }
  if (most == Duration::max()) return false;  // Nobody asked then.
  stretch.offset = most;
  stretch.vague = std::max(most - least, Duration(0)) + Duration(1'000);
  return least <= most + Duration(1'000);
}

// The first call that surely looked at the key where it stays.
const Seen* FirstLook(const Evidence& evidence, std::size_t track, const JudgedStretch& stretch) {
  const Seen* first = nullptr;
  for (const Seen& it : evidence.SeenOf(track)) {
    if (!it.is_decided() || it.asked->is_split || !stretch.Covers(*it.asked)) continue;
    if (evidence.MayKeysMove(it.asked->at, it.asked->answered)) continue;
    if (first == nullptr || it.asked->answered < first->asked->answered) first = &it;
  }
  return first;
}

void BeginAnew(const Evidence& evidence, std::size_t track, const Limit& limit, Duration from,
               JudgedStretch& stretch) {
  stretch.judged_from = from + TimeToBeOver(limit);
  if (IsBucketLimit(limit)) stretch.filled = FullestBucket(evidence, track, limit);
}

Admission At(const Seen& it, Duration at, const Limit& limit) {
  return {.at = at,
          .earliest = at,
          .latest = at,
          .asked = it.asked->at,
          .answered = it.asked->answered,
          .cost = it.use->cost,
          .live_until = at + limit.spec().lease + milliseconds(1)};
}

}  // namespace

Duration JudgedStretch::TimeOf(const Asked& asked) const {
  return asked.decided_at - sim::SimLoop::Beginning() - offset;
}

std::vector<JudgedStretch> StretchesInStore(const Evidence& evidence, std::size_t track) {
  std::vector<Change> cuts = evidence.ChangesOf(track);
  for (const Duration jump : evidence.store_terms().jumps) cuts.push_back({jump, jump});
  std::vector<JudgedStretch> stretches = CutAt(std::move(cuts));
  std::erase_if(stretches, [&](JudgedStretch& stretch) {
    if (!FindOffset(evidence, track, stretch)) return true;
    if (stretch.is_first) return false;
    const Seen* const look = FirstLook(evidence, track, stretch);
    if (look == nullptr) return true;
    const Limit& limit = evidence.LimitAt(look->use->limit);
    if (!CanBeJudged(limit)) return true;
    BeginAnew(evidence, track, limit, look->asked->answered, stretch);
    return false;
  });
  return stretches;
}

Knowledge KnowledgeInStore(const Evidence& evidence, std::size_t track, int number,
                           const JudgedStretch& stretch) {
  Knowledge known;
  const Limit& limit = evidence.LimitAt(number);
  for (const Seen& it : evidence.SeenOf(track)) {
    if (it.use->limit != number || it.asked->at >= stretch.ends) continue;
    const bool is_charged = it.asked->fate == Fate::kDecided && it.is_charged();
    if (!it.is_unknown() && !is_charged) continue;
    const bool is_dated = !it.is_unknown() && !it.asked->is_split && stretch.Covers(*it.asked);
    // What nobody can date took effect at the last moment: until then all of it, then what is left.
    const Duration at = is_dated ? stretch.TimeOf(*it.asked) : evidence.LatestEffect(*it.asked);
    if (!stretch.is_first && at < stretch.begins - stretch.vague) continue;
    known.perhaps.push_back({it.asked->at - stretch.vague, at, it.use->cost});
    if (at == Duration::max()) continue;
    Admission admission = At(it, at, limit);
    if (!it.is_unknown() && evidence.store_terms().lapses.empty()) {
      admission.live_until = std::min(admission.live_until, it.asked->known_released);
    }
    known.at_most.push_back(admission);
    if (it.is_unknown() || it.asked->at <= stretch.begins) continue;
    if (!is_dated) admission.at = it.asked->at;
    known.charged.push_back(admission);
  }
  std::ranges::sort(known.at_most, {}, &Admission::at);
  std::ranges::sort(known.charged, {}, &Admission::at);
  return known;
}

std::vector<JudgedStretch> StretchesInNode(const Evidence& evidence, std::size_t track, int node) {
  std::vector<JudgedStretch> stretches = CutAt(evidence.ChangesOf(track, node));
  std::erase_if(stretches, [&](JudgedStretch& stretch) {
    stretch.offset = evidence.NodeOffset(node);
    if (stretch.is_first) return false;
    for (const Seen& it : evidence.SeenOf(track)) {
      if (it.asked->node != node || !stretch.Covers(*it.asked)) continue;
      const Limit& limit = evidence.LimitAt(it.use->limit);
      if (!CanBeJudged(limit)) return true;
      BeginAnew(evidence, track, limit, evidence.NodeTime(node, stretch.begins), stretch);
      return false;
    }
    return true;
  });
  return stretches;
}

Knowledge KnowledgeInNode(const Evidence& evidence, std::size_t track, int number, int node,
                          const JudgedStretch& stretch) {
  Knowledge known;
  for (const Seen& it : evidence.SeenOf(track)) {
    if (it.use->limit != number || it.asked->node != node || !it.is_charged()) continue;
    if (!stretch.Covers(*it.asked)) continue;
    Admission admission = evidence.ByNode(it);
    admission.live_until += milliseconds(1);
    known.charged.push_back(admission);
  }
  std::ranges::sort(known.charged, {}, &Admission::at);
  known.at_most = known.charged;
  return known;
}

}  // namespace weir::lab
