#include "lab/compare/advice.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace weir::lab {
namespace {

// Above this a log takes more than 18 kB for a key, and a policy with one is advised against.
constexpr std::int64_t kLongestLog = 999;

std::string Number(std::int64_t count) {
  return WriteValue(static_cast<double>(count), Unit::kCount);
}

std::optional<CalendarPeriod> CalendarPeriodOf(Duration period) {
  if (period == std::chrono::days(1)) return CalendarPeriod::kDay;
  if (period == std::chrono::weeks(1)) return CalendarPeriod::kWeek;
  return std::nullopt;
}

// "minute", "30 s": as in "any minute".
std::string WordFor(Duration period) {
  constexpr std::pair<Duration, const char*> kWords[] = {{std::chrono::seconds(1), "second"},
                                                         {std::chrono::minutes(1), "minute"},
                                                         {std::chrono::hours(1), "hour"},
                                                         {std::chrono::days(1), "day"},
                                                         {std::chrono::weeks(1), "week"}};
  for (const auto& [length, word] : kWords) {
    if (length == period) return word;
  }
  return WriteValue(static_cast<double>(period.count()) / 1e9, Unit::kSeconds);
}

class Adviser {
 public:
  Adviser(const Wishes& wishes, const Limit& limit)
      : wishes_(wishes),
        limit_(limit),
        count_(limit.spec().count),
        period_(limit.spec().period),
        unit_(WordFor(period_)),
        window_("any " + unit_) {}

  Result<Advice> Make() {
    NameConflicts();
    if (wishes_.smooth) {
      Queue();
    } else if (wishes_.strict) {
      UseStrictCap();
    } else if (wishes_.resets) {
      FixedWindow();
    } else if (wishes_.bursts) {
      Bucket();
    } else if (wishes_.memory) {
      SmallBucket();
    } else {
      SlidingWindow();
    }
    const Result<Limit> made = Limit::Make(advice_.spec);
    if (!made) return std::unexpected(made.error());
    WritePolicy(*made);
    return std::move(advice_);
  }

 private:
  void Conflict(std::string text) { advice_.conflicts.push_back(std::move(text)); }

  // In the order in which wishes win: smooth, strict, resets, bursts.
  void NameConflicts() {
    if (wishes_.smooth && wishes_.bursts) {
      Conflict(
          "bursts and smooth: a burst cannot pass at once and leave evenly. It is taken in, waits, "
          "and leaves evenly.");
    }
    if (wishes_.smooth && wishes_.resets) {
      Conflict(
          "smooth and resets: what leaves evenly has no moment at which it starts again. The even "
          "outflow is kept, because it protects what is behind it.");
    }
    if (wishes_.smooth) return;
    if (wishes_.strict && wishes_.resets) {
      Conflict("strict and resets: a count that starts again at fixed times lets up to " +
               Number(2 * count_) + " through around such a time. The cap of " + Number(count_) +
               " is kept.");
    }
    if (wishes_.strict && wishes_.bursts) {
      Conflict("bursts and strict: " + Number(count_) +
               " may pass at once, but nothing beyond that. The cap is kept.");
    }
    if (!wishes_.strict && wishes_.resets && !wishes_.bursts) {
      Conflict(
          "resets without bursts: right after the count starts again all of it may be spent at "
          "once. The resets are kept.");
    }
  }

  void Take(std::string name, LimitSpec spec) {
    advice_.name = std::move(name);
    advice_.spec = std::move(spec);
    advice_.spec.count = count_;
    if (advice_.spec.align != Align::kCalendar) advice_.spec.period = period_;
  }

  void Queue() {
    Take("leaky_bucket queue",
         {.algorithm = Algorithm::kLeakyBucket, .burst = limit_.spec().burst, .queue = true});
    advice_.reason =
        "Requests get a turn each, one interval apart, and are told how long to wait for it; only "
        "what finds the queue of " +
        Number(limit_.capacity()) + " full is refused.";
    if (wishes_.strict) {
      advice_.reason += " As long as each costs 1 and waits as told, no more than " +
                        Number(count_) + " go ahead in " + window_ + ".";
    }
    if (wishes_.memory) advice_.reason += " A key takes some 28 bytes, as little as any.";
    advice_.given_up =
        "Answers at once: the last in a full queue waits " +
        WriteValue(static_cast<double>(limit_.refill_time().count()) / 1e9, Unit::kSeconds) +
        ", and whoever asks must wait as told, or let the service hold the answer.";
    advice_.second = wishes_.strict ? "sliding_window with strict: true, where nobody can wait."
                     : wishes_.resets
                         ? "fixed_window, if the times of the resets matter more than even outflow."
                         : "token_bucket with a small burst, where nobody can wait.";
  }

  void UseStrictCap() {
    const std::int64_t burst = SmallBurst();
    if (!wishes_.bursts && burst <= count_ / 2) return CappedBucket(burst);
    const bool log = !wishes_.memory && count_ <= kLongestLog;
    if (log) {
      Take("sliding_log", {.algorithm = Algorithm::kSlidingLog});
      advice_.reason = "It remembers when each request was let through, so never more than " +
                       Number(count_) + " pass in " + window_ +
                       ", and nobody is refused a moment longer than that takes.";
      advice_.given_up = "Memory: 128 bytes for every seven requests that it remembers.";
    } else {
      Take("sliding_window strict", {.algorithm = Algorithm::kSlidingWindow, .strict = true});
      advice_.reason =
          "It counts whole sub-windows, one more than the period has, so never more "
          "than " +
          Number(count_) + " pass in " + window_ + ". A key takes some 220 bytes " +
          (wishes_.memory ? "however large the limit is; a log's grows with it."
                          : "however large the limit is; a log of this size would "
                            "take many times that.");
      advice_.given_up =
          "A tenth of the period: what was spent in a burst comes back up to that much later.";
    }
    if (wishes_.resets) {
      advice_.second =
          count_ >= 2
              ? "fixed_window with half the limit: its counts start again at fixed times, and "
                "twice the half is the limit. It lets half as much through on average."
              : "fixed_window, if up to two around a reset are fine.";
    } else if (wishes_.memory) {
      advice_.second =
          count_ >= 2 ? "token_bucket with half the limit and a burst of half the limit: together "
                        "never more than the limit, in 28 bytes. It lets half as much through on "
                        "average."
                      : "token_bucket, if two within a period now and then are fine.";
    } else {
      advice_.second =
          log ? "sliding_window with strict: true, which takes the same memory for any "
                "limit and refuses up to a tenth of the period longer."
              : "token_bucket, if the average is what matters.";
    }
  }

  void FixedWindow() {
    const std::optional<CalendarPeriod> calendar = CalendarPeriodOf(period_);
    if (calendar) {
      Take(
          "fixed_window",
          {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendar, .calendar = *calendar});
    } else {
      Take("fixed_window", {.algorithm = Algorithm::kFixedWindow});
    }
    const std::string when = calendar == CalendarPeriod::kDay ? "at midnight in its time zone"
                             : calendar == CalendarPeriod::kWeek
                                 ? "on Monday at midnight in its time zone"
                                 : "at every full " + unit_;
    advice_.reason = "Its count starts again " + when +
                     ", for everybody at the same time: easy to put in a contract, on a page and "
                     "in a header.";
    if (wishes_.memory) advice_.reason += " A key takes some 56 bytes.";
    advice_.given_up = "The limit around a reset: " + Number(count_) + " right before it and " +
                       Number(count_) + " right after it pass, " + Number(2 * count_) +
                       " in no time.";
    advice_.second =
        "token_bucket, if resets are only for display: it says when a key is full again. Or both, "
        "as two rules: a quota for the day, and a bucket for the minute.";
  }

  void Bucket() {
    Take("token_bucket", {.burst = limit_.spec().burst});
    advice_.reason =
        "A client that was quiet may send " + Number(limit_.capacity()) +
        " at once; after that it gets the rate, so in any time t never more than the burst and "
        "what "
        "the rate brings in t. It is the cheapest there is: some 28 bytes for a key, and no lock.";
    advice_.given_up = "A cap on windows: in " + window_ + " up to " +
                       Number(limit_.capacity() + count_) + " may pass.";
    advice_.second = "sliding_window, if about " + Number(count_) + " in " + window_ +
                     " describes better what is meant than a rate and a burst.";
  }

  std::int64_t SmallBurst() const {
    return limit_.spec().burst > 0 ? limit_.spec().burst : std::max<std::int64_t>(1, count_ / 10);
  }

  // The burst is taken off the rate, so that both together stay below the cap.
  void CappedBucket(std::int64_t burst) {
    Take("token_bucket", {.burst = burst});
    advice_.spec.count = count_ - burst;
    advice_.reason = "A burst of " + Number(burst) + ", and " + Number(count_ - burst) +
                     " that come back, are together never more than " + Number(count_) + " in " +
                     window_ +
                     ", wherever it begins. No more than the burst passes at once, and a "
                     "key takes some 28 bytes, as little as any.";
    advice_.given_up = "A part of the rate: " + Number(count_ - burst) + " rather than " +
                       Number(count_) + " on average.";
    advice_.second = wishes_.resets
                         ? "fixed_window with half the limit: its counts start again at fixed "
                           "times, and twice the half is the limit."
                         : "sliding_window with strict: true, which lets the whole limit through, "
                           "but all of it at once if it comes so.";
  }

  void SmallBucket() {
    const std::int64_t burst = SmallBurst();
    Take("token_bucket", {.burst = burst});
    advice_.reason = "With a burst of " + Number(burst) + ", in " + window_ + " never more than " +
                     Number(count_ + burst) +
                     " pass, evenly but for that. It takes the least memory: some 28 bytes for a "
                     "key.";
    advice_.given_up = "Clients that send in bursts of more than " + Number(burst) +
                       " are refused, even if they were quiet before.";
    advice_.second = "sliding_window, which takes twice the memory and minds bursts less.";
  }

  void SlidingWindow() {
    Take("sliding_window", {.algorithm = Algorithm::kSlidingWindow});
    advice_.reason = "It lets about " + Number(count_) + " through in " + window_ +
                     ", without a second burst when a window ends: what is left of the window "
                     "before still counts, as if it had been spread evenly.";
    advice_.given_up =
        "Certainty: the estimate is a few percent off on ordinary traffic, but "
        "whoever means to can get almost " +
        Number(2 * count_) + " through in " + window_ + ".";
    advice_.second =
        "token_bucket with a small burst, which takes half the memory and has a bound "
        "for every length of time.";
  }

  void WritePolicy(const Limit& limit) {
    const LimitSpec& spec = advice_.spec;
    std::string& yaml = advice_.policy;
    yaml = "rules:\n  - name: per-client\n    key: ip\n    limit: " + limit.ToString() + "\n";
    const auto add = [&](std::string_view key, std::string_view value) {
      yaml += "    " + std::string(key) + ": " + std::string(value) + "\n";
    };
    add("algorithm", NameOf(spec.algorithm));
    if (spec.queue) add("queue", "true");
    if (spec.strict) add("strict", "true");
    if (spec.align == Align::kCalendar) {
      add("align", "calendar");
      add("zone", spec.zone);
    }
  }

  const Wishes& wishes_;
  const Limit& limit_;
  const std::int64_t count_;
  const Duration period_;
  const std::string unit_;    // minute, or 30 s
  const std::string window_;  // any minute
  Advice advice_;
};

}  // namespace

Result<Advice> Advise(const Wishes& wishes, const Limit& limit) {
  return Adviser(wishes, limit).Make();
}

Report ReportOf(const Advice& advice) {
  Report report{.title = "Take " + advice.name};
  if (!advice.conflicts.empty()) {
    std::string text;
    for (const std::string& conflict : advice.conflicts) {
      if (!text.empty()) text += '\n';
      text += conflict;
    }
    report.sections.emplace_back(Paragraph{"Wishes that exclude each other", std::move(text)});
  }
  report.sections.emplace_back(Paragraph{"Why", advice.reason});
  report.sections.emplace_back(Paragraph{"What is given up", advice.given_up});
  report.sections.emplace_back(Paragraph{"Second choice", advice.second});
  report.sections.emplace_back(Listing{.title = "The policy to begin with", .text = advice.policy});
  report.sections.emplace_back(
      Paragraph{"Not asked",
                "If the question is how many at once rather than how many in a time: "
                "concurrency, such as limit: 20 concurrent."});
  return report;
}

std::string JsonOf(const Advice& advice, const Wishes& wishes) {
  nlohmann::ordered_json json = {{"wishes",
                                  {{"bursts", wishes.bursts},
                                   {"strict", wishes.strict},
                                   {"smooth", wishes.smooth},
                                   {"memory", wishes.memory},
                                   {"resets", wishes.resets}}},
                                 {"take", advice.name},
                                 {"conflicts", advice.conflicts},
                                 {"reason", advice.reason},
                                 {"given_up", advice.given_up},
                                 {"second_choice", advice.second},
                                 {"policy", advice.policy}};
  return json.dump(2) + "\n";
}

}  // namespace weir::lab
