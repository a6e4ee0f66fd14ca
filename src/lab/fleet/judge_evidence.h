// What a record says about counts, put so that it can be judged: when charges were decided, how
// late one that nobody heard of may have taken effect, when limits changed and clocks were moved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/fleet/record.h"
#include "sim/promise.h"

namespace weir::lab {

// One request as a track sees it.
struct Seen {
  const Asked* asked;
  const Use* use;

  bool is_answered() const { return asked->answers > 0; }
  bool is_decided() const { return asked->fate == Fate::kDecided && is_answered(); }
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

// Another limit came for a key. If calls under both may have crossed each other, each made of the
// key's state what its own limit says, and what was let through meanwhile is bound by neither.
struct Change {
  Duration begins{0};
  Duration ends{0};

  bool is_mixed() const noexcept { return ends > begins; }
  // Across it one burst more may be had.
  sim::Lapse lapse() const noexcept { return {begins, ends}; }
};

bool IsBucketLimit(const Limit& limit);
bool CanBeJudged(const Limit& limit);
// By the calendar rather than by a clock that only goes forward.
bool GoesByCalendar(const Limit& limit);

class Evidence {
 public:
  explicit Evidence(const Record& record);

  const Record& record() const noexcept { return record_; }
  std::size_t tracks() const noexcept { return seen_.size(); }
  const std::vector<Seen>& SeenOf(std::size_t track) const { return seen_[track]; }
  const Limit& LimitAt(int number) const {
    return record_.limits[static_cast<std::size_t>(number)].limit;
  }
  // " of rule, key"
  std::string Which(std::size_t track) const;

  const sim::PromiseTerms& store_terms() const noexcept { return store_terms_; }
  const sim::PromiseTerms& TermsOf(int node) const {
    return node_terms_[static_cast<std::size_t>(node)];
  }
  bool moves_server_clock() const noexcept { return !store_terms_.jumps.empty(); }
  // Some server's clock is not what it was in the beginning, at some time in between.
  bool IsClockMoved(Duration first, Duration last) const;
  // Keys may go from one server to another, or back to what they were a moment before.
  bool MayKeysMove(Duration first, Duration last) const;

  // What the steady clock of a node showed.
  Duration NodeTime(int node, Duration world) const;
  Duration NodeOffset(int node) const;
  // By a server whose clock is what it was in the beginning.
  Duration StoreTime(const Asked& asked) const;

  sim::Admission ByStore(const Seen& it) const;
  sim::Admission ByNode(const Seen& it) const;

  // The last moment at which it may have taken effect: the end of what went wrong just then, and
  // the time that things take to settle. max() if nothing went wrong that would explain it.
  Duration LatestEffect(const Asked& asked) const;

  // Of the calls of a track, by all nodes or by one.
  std::vector<Change> ChangesOf(std::size_t track, std::optional<int> node = {}) const;

 private:
  const Record& record_;
  sim::PromiseTerms store_terms_;
  std::vector<sim::PromiseTerms> node_terms_;
  std::vector<std::vector<Seen>> seen_;  // By track.
};

}  // namespace weir::lab
