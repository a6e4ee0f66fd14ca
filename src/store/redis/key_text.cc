#include "store/redis/key_text.h"

#include <utility>

#include "base/mix.h"
#include "store/redis/reservation_id.h"
#include "store/redis/slots.h"

namespace weir::redis {
namespace {

constexpr std::string_view kPrefix = "weir1:{";

std::string_view WordOf(Aspect aspect) noexcept {
  switch (aspect) {
    case Aspect::kBan:
      return "ban:";
    case Aspect::kDenials:
      return "denials:";
    case Aspect::kBanSteps:
      return "steps:";
    default:
      return "";
  }
}

void AppendHex(std::string& out, std::uint64_t number, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out.push_back("0123456789abcdef"[number >> shift & 15U]);
  }
}

// `word` says what of the rule's it is.
void AppendWithWord(std::string& out, const Charge& charge, std::string_view word) {
  const Limit& limit = *charge.limit;
  out.append(kPrefix).append(charge.key).append("}:").append(charge.rule);
  if (charge.rule.empty() && KindOf(limit) != StateKind::kBucket) {
    out.push_back('=');
    AppendHex(out, ShapeOf(limit), 8);
  }
  out.push_back(':');
  out.append(word).push_back(LetterOf(limit));
}

}  // namespace

char LetterOf(const Limit& limit) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
      return 't';
    case Algorithm::kLeakyBucket:
      return limit.spec().queue ? 'q' : 'l';
    case Algorithm::kFixedWindow:
      return limit.calendar() != nullptr ? 'd' : 'f';
    case Algorithm::kSlidingWindow:
      return limit.spec().strict ? 'x' : 's';
    case Algorithm::kSlidingLog:
      return 'g';
    default:
      return 'c';
  }
}

StateKind KindOf(const Limit& limit) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return StateKind::kBucket;
    case Algorithm::kFixedWindow:
      return limit.calendar() != nullptr ? StateKind::kCalendarWindow : StateKind::kFixedWindow;
    case Algorithm::kSlidingWindow:
      return limit.spec().strict ? StateKind::kStrictWindow : StateKind::kSlidingWindow;
    default:
      return StateKind::kLog;
  }
}

std::uint32_t ShapeOf(const Limit& limit) noexcept {
  const LimitSpec& spec = limit.spec();
  std::uint64_t shape = 0;
  const auto add = [&](std::uint64_t value) { shape = Mix(shape ^ value); };
  if (limit.calendar() != nullptr) {
    const bool weekly = spec.calendar == CalendarPeriod::kWeek;
    add(std::to_underlying(spec.calendar));
    add(weekly ? spec.week_start.c_encoding() : 0);
    for (const char c : spec.zone) add(static_cast<unsigned char>(c));
  } else if (spec.algorithm == Algorithm::kConcurrency) {
    add(static_cast<std::uint64_t>(spec.lease.count()));
  } else {
    add(static_cast<std::uint64_t>(spec.period.count()));
    add(spec.strict ? static_cast<std::uint64_t>(spec.sub_windows) : 0);
  }
  return static_cast<std::uint32_t>(shape);
}

void AppendKey(std::string& out, const Charge& charge) {
  AppendWithWord(out, charge, WordOf(charge.aspect));
}

void AppendUndoneKey(std::string& out, const Charge& charge) {
  AppendWithWord(out, charge, "undone:");
}

void AppendRecordKey(std::string& out, ReservationId id) {
  out.append(kPrefix).append(TagOfSlot(SlotOfReservation(id))).append("}:#");
  AppendHex(out, static_cast<std::uint64_t>(id), 16);
}

}  // namespace weir::redis
