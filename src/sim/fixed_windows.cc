#include "sim/fixed_windows.h"

#include <algorithm>
#include <map>

namespace weir::sim {
namespace {

// What was let through in one window.
struct Use {
  std::int64_t sum = 0;
  Duration asked = Duration::max();
  Duration answered = Duration::min();

  void Add(const Admission& it) {
    sum += it.cost;
    Cover(it.asked, it.answered);
  }
  void Cover(Duration from, Duration to) {
    asked = std::min(asked, from);
    answered = std::max(answered, to);
  }
};

std::int64_t MostIn(const LimitSpec& spec, const Use& use, const PromiseTerms& terms) {
  return spec.count * (1 + LapsesBetween(terms, use.asked, use.answered)) +
         GivenBackBetween(terms, use.asked, use.answered);
}

std::string Text(const Use& use, const char* where) {
  return std::to_string(use.sum) + " let through from " + std::to_string(use.asked.count()) +
         " to " + std::to_string(use.answered.count()) + " ns " + where;
}

bool IsWithin(Duration asked, Duration answered, Duration begins, Duration ends) {
  return begins < asked && answered < ends;
}

// Calls `look` with each stretch of time in which no clock was set back.
template <typename Look>
std::optional<std::string> FindInStretches(const PromiseTerms& terms, Look look) {
  Duration begins = Duration::min();
  for (const Duration step : terms.steps_back) {
    if (auto found = look(begins, step)) return found;
    begins = step;
  }
  return look(begins, Duration::max());
}

// The window asked for first after a step, if nobody can have asked for an earlier one.
std::optional<std::int64_t> FirstTouched(const std::vector<Touch>& touches, Duration step,
                                         Duration ends) {
  const Touch* first = nullptr;
  for (const Touch& it : touches) {
    // Under way when the clock was moved: perhaps before, perhaps after.
    if (it.asked <= step && it.answered >= step) return std::nullopt;
    if (!IsWithin(it.asked, it.answered, step, ends) || !it.window) continue;
    if (first == nullptr || *it.window < *first->window) first = &it;
  }
  if (first == nullptr) return std::nullopt;
  for (const Touch& it : touches) {
    if (it.answered >= step && !it.window && it.asked <= first->answered) return std::nullopt;
  }
  return first->window;
}

// The window whose count the server has when the step comes, if nobody can have begun a later one.
std::optional<std::int64_t> LastCounted(const std::vector<Admission>& admissions,
                                        const std::vector<Touch>& touches, Duration begins,
                                        Duration step) {
  const Admission* last = nullptr;
  for (const Admission& it : admissions) {
    if (!it.window || !IsWithin(it.asked, it.answered, begins, step)) continue;
    if (last == nullptr || *it.window >= *last->window) last = &it;
  }
  if (last == nullptr) return std::nullopt;
  for (const Touch& it : touches) {
    if (it.asked > step || it.answered < last->asked) continue;
    const bool is_known = it.window && IsWithin(it.asked, it.answered, begins, step);
    if (!is_known || *it.window > *last->window) return std::nullopt;
  }
  return last->window;
}

}  // namespace

std::int64_t WindowAt(const LimitSpec& spec, WallTime wall) {
  return wall.time_since_epoch() / spec.period;
}

std::optional<std::string> FindFullWindow(const Limit& limit,
                                          const std::vector<Admission>& admissions,
                                          const PromiseTerms& terms) {
  return FindInStretches(terms, [&](Duration begins, Duration ends) -> std::optional<std::string> {
    std::map<std::int64_t, Use> uses;
    for (const Admission& it : admissions) {
      // Of one that was under way at a step nobody knows on which side it was decided.
      if (!it.window || !IsWithin(it.asked, it.answered, begins, ends)) continue;
      Use& use = uses[*it.window];
      use.Add(it);
      if (use.sum > MostIn(limit.spec(), use, terms)) return Text(use, "in one window");
    }
    return std::nullopt;
  });
}

std::optional<std::string> FindGainByStepBack(const Limit& limit,
                                              const std::vector<Admission>& admissions,
                                              const std::vector<Touch>& touches,
                                              const PromiseTerms& terms) {
  Duration begins = Duration::min();
  for (std::size_t i = 0; i < terms.steps_back.size(); ++i) {
    const Duration step = terms.steps_back[i];
    const bool is_last = i + 1 == terms.steps_back.size();
    const Duration ends = is_last ? Duration::max() : terms.steps_back[i + 1];
    const std::optional<std::int64_t> counted = LastCounted(admissions, touches, begins, step);
    const std::optional<std::int64_t> first = FirstTouched(touches, step, ends);
    if (counted && first && *first <= *counted) {
      Use use;
      for (const Admission& it : admissions) {
        const bool is_before =
            it.window == counted && IsWithin(it.asked, it.answered, begins, step);
        const bool is_after = it.window == first && IsWithin(it.asked, it.answered, step, ends);
        if (is_before || is_after) use.Add(it);
      }
      if (use.sum > MostIn(limit.spec(), use, terms)) {
        return Text(use, "in a window and the one after a step back");
      }
    }
    begins = step;
  }
  return std::nullopt;
}

}  // namespace weir::sim
