// Stretches of time in which neither a server's clock was moved nor a key's limit changed, and what
// is known of a key in each: every charge that was or may have been.
//
// What a key had before a stretch is not known once a clock was moved or another limit came. But
// whoever looks at a key first afterwards brings it within bounds: a bucket is ahead by no more
// than it can be, windows and logs by no more than a period. So the oracle of a later stretch
// begins with a bucket that is as full as can be, and with windows once all that was there is over.
#pragma once

#include <optional>
#include <vector>

#include "lab/fleet/judge_evidence.h"

namespace weir::lab {

struct JudgedStretch {
  Duration begins = Duration::min();
  Duration ends = Duration::max();
  bool is_first = true;
  // How far the clock of the key's server was ahead of the world's, at most; and by how much less
  // it may have been.
  Duration offset{0};
  Duration vague{0};
  // From then on denials are judged; a bucket is filled so far at that time.
  Duration judged_from = Duration::min();
  double filled = 0;

  bool Covers(const Asked& asked) const {
    return begins < asked.at && asked.answers > 0 && asked.answered < ends;
  }
  // By the world's clock, or a little earlier.
  Duration TimeOf(const Asked& asked) const;
};

// What may have been charged from one moment on, until another.
struct Perhaps {
  Duration from;
  Duration to;
  std::int64_t cost;
};

struct Knowledge {
  std::vector<sim::Admission> charged{};  // For sure.
  std::vector<sim::Admission> at_most{};  // And what may have been, at the last moment; by `at`.
  std::vector<Perhaps> perhaps{};
};

// Those in which the store's decisions about the track can be judged, in order.
std::vector<JudgedStretch> StretchesInStore(const Evidence& evidence, std::size_t track);
Knowledge KnowledgeInStore(const Evidence& evidence, std::size_t track, int number,
                           const JudgedStretch& stretch);

// The same of what a node keeps in its memory.
std::vector<JudgedStretch> StretchesInNode(const Evidence& evidence, std::size_t track, int node);
Knowledge KnowledgeInNode(const Evidence& evidence, std::size_t track, int number, int node,
                          const JudgedStretch& stretch);

}  // namespace weir::lab
