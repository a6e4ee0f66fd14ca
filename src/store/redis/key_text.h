// The names under which state is kept.
//
//   weir1:{subject}:rule:t          the rule's count of a subject
//   weir1:{subject}:rule:ban:t      what else a rule counts of it
//   weir1:{subject}:rule:undone:t   what was just given back to its bucket after denials elsewhere
//   weir1:{subject}::t              under a limit that came with the request
//   weir1:{subject}:=1a2b3c4d:f     the same, where windows of another length must stay apart
//   weir1:{tag}:#0123456789abcdef   the record of a reservation
//
// 1 is the version of the state; the last letter says which algorithm's it is.
#pragma once

#include <cstdint>
#include <string>

#include <weir/decision.h>
#include <weir/limit.h>

#include "store/store.h"

namespace weir::redis {

enum class StateKind : std::uint8_t {
  kBucket,
  kFixedWindow,
  kCalendarWindow,
  kSlidingWindow,
  kStrictWindow,
  kLog,
};
StateKind KindOf(const Limit& limit) noexcept;
// The last of the key.
char LetterOf(const Limit& limit) noexcept;

// Of a limit that counts. The same in every process: the length of the window, or which calendar.
std::uint32_t ShapeOf(const Limit& limit) noexcept;

void AppendKey(std::string& out, const Charge& charge);
void AppendUndoneKey(std::string& out, const Charge& charge);
void AppendRecordKey(std::string& out, ReservationId id);

}  // namespace weir::redis
