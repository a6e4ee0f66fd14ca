#include "lab/fleet/judge_denials.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lab/fleet/intervals.h"
#include "lab/fleet/judge_stretches.h"
#include "lab/fleet/usage.h"
#include "store/guard/share.h"

namespace weir::lab {
namespace {

using sim::Admission;
using std::chrono::seconds;

class DenialTrial {
 public:
  DenialTrial(const Evidence& evidence, Verdict& verdict)
      : evidence_(evidence), record_(evidence.record()), verdict_(verdict) {}

  void Judge() {
    for (track_ = 0; track_ < evidence_.tracks(); ++track_) {
      JudgeWhatNeverFits();
      if (record_.is_shared()) JudgeInStore();
      for (int node = 0; node < record_.nodes; ++node) JudgeInNode(node);
    }
    for (const LedgerNote& note : record_.ledger) JudgeLedger(note);
  }

 private:
  using Denials = std::vector<const Seen*>;

  void JudgeWhatNeverFits() {
    for (const Seen& it : evidence_.SeenOf(track_)) {
      if (!it.is_answered() || it.use->allowed || it.use->reason != Reason::kNeverFits) continue;
      const Limit& limit = evidence_.LimitAt(it.use->limit);
      if (!CanBeJudged(limit)) continue;
      verdict_.Check(2, it.use->cost > limit.capacity(), [&] {
        return "denied for ever, though it fits" + evidence_.Which(track_) + " " +
               AskedAt(*it.asked);
      });
    }
  }

  // Those that the limit of a stretch denied, by one who says so; nothing if there is no such
  // limit.
  Denials DenialsIn(const JudgedStretch& stretch, const auto& is_by) const {
    Denials denials;
    for (const Seen& it : evidence_.SeenOf(track_)) {
      if (!stretch.Covers(*it.asked) || it.use->allowed || !is_by(it)) continue;
      if (it.use->reason != Reason::kLimited) continue;
      if (CanBeJudged(evidence_.LimitAt(it.use->limit))) denials.push_back(&it);
    }
    return denials;
  }

  void JudgeInStore() {
    const auto is_by_store = [](const Seen& it) {
      return it.use->source == Source::kStore && !it.asked->is_split;
    };
    if (std::ranges::none_of(evidence_.SeenOf(track_), [&](const Seen& it) {
          return it.is_answered() && !it.use->allowed && is_by_store(it);
        })) {
      return;
    }
    for (const JudgedStretch& stretch : StretchesInStore(evidence_, track_)) {
      Denials denials = DenialsIn(stretch, is_by_store);
      if (denials.empty()) continue;
      const int number = denials.front()->use->limit;
      const Limit& limit = evidence_.LimitAt(number);
      const auto when = [&](const Seen* it) { return stretch.TimeOf(*it->asked); };
      std::erase_if(denials, [&](const Seen* it) { return it->asked->at < stretch.judged_from; });
      std::ranges::sort(denials, {}, when);
      Check(limit, KnowledgeInStore(evidence_, track_, number, stretch), stretch, denials, when);
    }
  }

  void JudgeInNode(int node) {
    const auto is_by_node = [&](const Seen& it) {
      return it.asked->node == node &&
             (it.use->source == Source::kFallback || it.use->source == Source::kMemory);
    };
    if (record_.is_shared() && record_.fleet_size == 0) return;
    for (const JudgedStretch& stretch : StretchesInNode(evidence_, track_, node)) {
      Denials denials = DenialsIn(stretch, is_by_node);
      if (denials.empty()) continue;
      const int number = denials.front()->use->limit;
      const Limit& limit = evidence_.LimitAt(number);
      // What is given back in the store is given back here as well, at its own time.
      if (limit.algorithm() == Algorithm::kConcurrency) continue;
      if (GoesByCalendar(limit) && !evidence_.TermsOf(node).jumps.empty()) continue;
      const auto when = [&](const Seen* it) {
        return evidence_.NodeTime(node, it->asked->answered);
      };
      std::erase_if(denials, [&](const Seen* it) { return when(it) < stretch.judged_from; });
      std::ranges::sort(denials, {}, when);
      Check(record_.is_shared() ? ShareOf(limit, record_.fleet_size) : limit,
            KnowledgeInNode(evidence_, track_, number, node, stretch), stretch, denials, when);
    }
  }

  static Usage Begin(const Limit& limit, const JudgedStretch& stretch) {
    Usage usage(limit, stretch.offset);
    if (stretch.filled > 0) usage.Fill(stretch.judged_from, stretch.filled);
    return usage;
  }

  void Check(const Limit& limit, const Knowledge& known, const JudgedStretch& stretch,
             const Denials& denials, const auto& when) {
    Usage usage = Begin(limit, stretch);
    SumOverTime perhaps;
    for (const Perhaps& it : known.perhaps) perhaps.Add(it.from, it.to, it.cost);
    std::size_t next = 0;
    for (const Seen* const it : denials) {
      const Duration at = when(it);
      for (; next < known.at_most.size() && known.at_most[next].at <= at; ++next) {
        const Admission& charge = known.at_most[next];
        usage.Add(charge.at, charge.cost, charge.live_until);
      }
      CheckDenial(limit, *it, usage.Most(at) + static_cast<double>(perhaps.At(at)));
    }
  }

  void CheckDenial(const Limit& limit, const Seen& it, double used) {
    const LimitSpec& spec = limit.spec();
    const auto room = static_cast<double>(limit.capacity() + (spec.queue ? 1 : 0));
    const double wanted = used + static_cast<double>(std::max<std::int64_t>(it.use->cost, 1));
    verdict_.Check(2, wanted > room - 1e-3, [&] {
      return "denied without need, " + std::to_string(used) + " of " +
             std::to_string(limit.capacity()) + " used" + evidence_.Which(track_) + " " +
             AskedAt(*it.asked);
    });
  }

  // --- What is left ---

  void JudgeLedger(const LedgerNote& note) {
    track_ = static_cast<std::size_t>(note.track);
    const Limit& limit = evidence_.LimitAt(note.limit);
    if (!CanBeJudged(limit)) return;
    if (record_.ended >= HealedBefore(record_, record_.ended) + seconds(2)) {
      verdict_.Check(7, note.used.has_value(), [&] {
        return "what is left" + evidence_.Which(track_) + " could not be read";
      });
    }
    if (!note.used || limit.algorithm() == Algorithm::kConcurrency) return;
    if (note.node < 0) {
      JudgeLeftInStore(note, limit);
    } else if (!GoesByCalendar(limit) || evidence_.TermsOf(note.node).jumps.empty()) {
      JudgeLeftInNode(note, limit);
    }
  }

  // The last stretch goes on until the end, if anything is known of it.
  bool IsAbout(const std::vector<JudgedStretch>& stretches, const LedgerNote& note) const {
    if (stretches.empty() || stretches.back().ends != Duration::max()) return false;
    const JudgedStretch& last = stretches.back();
    return std::ranges::all_of(evidence_.SeenOf(track_), [&](const Seen& it) {
      return it.use->limit == note.limit || it.asked->at <= last.begins ||
             (note.node >= 0 && it.asked->node != note.node);
    });
  }

  void JudgeLeftInStore(const LedgerNote& note, const Limit& limit) {
    const std::vector<JudgedStretch> stretches = StretchesInStore(evidence_, track_);
    if (!IsAbout(stretches, note)) return;
    const JudgedStretch& last = stretches.back();
    CompareLeft(note, limit, KnowledgeInStore(evidence_, track_, note.limit, last), last,
                evidence_.store_terms().lapses.empty());
  }

  void JudgeLeftInNode(const LedgerNote& note, const Limit& limit) {
    const std::vector<JudgedStretch> stretches = StretchesInNode(evidence_, track_, note.node);
    if (!IsAbout(stretches, note)) return;
    const JudgedStretch& last = stretches.back();
    Knowledge known = KnowledgeInNode(evidence_, track_, note.limit, note.node, last);
    // What came before its last start is forgotten.
    for (const sim::Lapse& lapse : evidence_.TermsOf(note.node).lapses) {
      const auto is_over = [&](const Admission& it) { return it.answered <= lapse.ends; };
      std::erase_if(known.charged, is_over);
      std::erase_if(known.at_most, is_over);
    }
    LedgerNote by_its_clock = note;
    by_its_clock.at = evidence_.NodeTime(note.node, note.at);
    CompareLeft(by_its_clock, limit, known, last, true);
  }

  void CompareLeft(const LedgerNote& note, const Limit& limit, const Knowledge& known,
                   const JudgedStretch& stretch, bool is_remembered) {
    if (note.at < stretch.judged_from) return;
    Usage at_most = Begin(limit, stretch);
    for (const Admission& it : known.at_most) {
      if (it.at <= note.at) at_most.Add(it.at, it.cost);
    }
    SumOverTime perhaps;
    for (const Perhaps& it : known.perhaps) perhaps.Add(it.from, it.to, it.cost);
    const std::int64_t unknown = perhaps.At(note.at);
    Usage at_least(limit, stretch.offset);
    for (const Admission& it : known.charged) at_least.Add(it.at, it.cost);
    const auto used = static_cast<double>(*note.used);
    const double most = std::ceil(at_most.Most(note.at)) + static_cast<double>(unknown);
    // What is above the capacity is not told.
    const double least = std::min(at_least.Least(note.at) - (limit.spec().queue ? 1 : 0),
                                  static_cast<double>(limit.capacity()));
    const auto text = [&](const char* what) {
      return std::string(what) + ": " + std::to_string(*note.used) + " charged, " +
             std::to_string(least) + " to " + std::to_string(most) + " let through, " +
             std::to_string(unknown) + " of them perhaps," + evidence_.Which(track_) +
             (note.node >= 0 ? ", node " + std::to_string(note.node + 1) : "");
    };
    verdict_.Check(8, used <= most, [&] { return text("too much"); });
    if (is_remembered) verdict_.Check(8, used >= least, [&] { return text("too little"); });
  }

  const Evidence& evidence_;
  const Record& record_;
  Verdict& verdict_;
  std::size_t track_ = 0;
};

}  // namespace

void JudgeDenials(const Evidence& evidence, Verdict& verdict) {
  DenialTrial(evidence, verdict).Judge();
}

}  // namespace weir::lab
