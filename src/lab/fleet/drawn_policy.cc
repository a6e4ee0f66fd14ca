#include "lab/fleet/drawn_policy.h"

#include <string>

#include "limit/limit_words.h"
#include "policy/policy_ranges.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kLedger = "ledger";

std::string LimitText(const RuleSpec& rule, Duration period, sim::Random& random) {
  if (rule.algorithm == Algorithm::kConcurrency) {
    return std::to_string(random.Between(1, 8)) + " concurrent lease " +
           std::to_string(random.Between(100, 2000)) + "ms";
  }
  std::string text =
      std::to_string(random.Between(1, 40)) + "/" + std::to_string(period / milliseconds(1)) + "ms";
  const bool is_bucket =
      rule.algorithm == Algorithm::kTokenBucket || rule.algorithm == Algorithm::kLeakyBucket;
  if (is_bucket) text += " burst " + std::to_string(random.Between(1, 30));
  return text;
}

Duration DrawPeriod(sim::Random& random) { return milliseconds(random.Between(100, 4000)); }

KeySpec DrawKey(sim::Random& random) {
  switch (random.Index(6)) {
    case 0:
      return {};
    case 1:
      return {"ip"};
    case 2:
      return {"user", "path"};
    default:
      return {"user"};
  }
}

RuleSpec DrawRule(int number, sim::Random& random) {
  RuleSpec rule{.name = "rule" + std::to_string(number)};
  rule.key = DrawKey(random);
  rule.algorithm =
      random.OneOf({Algorithm::kTokenBucket, Algorithm::kTokenBucket, Algorithm::kTokenBucket,
                    Algorithm::kLeakyBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindow,
                    Algorithm::kSlidingLog, Algorithm::kConcurrency});
  if (rule.algorithm == Algorithm::kLeakyBucket) rule.queue = random.Chance(50);
  if (rule.algorithm == Algorithm::kSlidingWindow && random.Chance(50)) {
    rule.strict = true;
    rule.sub_windows = static_cast<int>(random.Between(2, 12));
  }
  rule.limit = LimitText(rule, DrawPeriod(random), random);
  if (random.Chance(10)) rule.mode = RuleMode::kShadow;
  if (random.Chance(30)) {
    rule.match = {{"path", {random.OneOf({"/a", "/b"})}}};
  }
  rule.on_store_failure = random.OneOf(
      {FailureMode::kStatic, FailureMode::kStatic, FailureMode::kOpen, FailureMode::kClosed});
  return rule;
}

}  // namespace

PolicySpec DrawnPolicy(sim::Random& random) {
  PolicySpec spec;
  // Of the few keys that are drawn none needs more, and many worlds have to be made.
  spec.memory.cap = kMemoryCapRange.least;
  // What most policies are: servers decide a bucket that is alone by a script of its own, and so
  // they do a few buckets.
  if (random.Chance(25)) {
    const auto few = random.Between(1, 2);
    for (int i = 1; i <= few; ++i) {
      RuleSpec rule = DrawRule(i, random);
      rule.algorithm = Algorithm::kTokenBucket;
      rule.queue = rule.strict = false;
      rule.sub_windows = RuleSpec{}.sub_windows;
      rule.limit = LimitText(rule, DrawPeriod(random), random);
      spec.rules.push_back(std::move(rule));
    }
    return spec;
  }
  const auto count = random.Between(1, 3);
  for (int i = 1; i <= count; ++i) spec.rules.push_back(DrawRule(i, random));
  // So large, and so slow to come back, that nothing does during the run.
  RuleSpec ledger{.name = std::string(kLedger), .key = {"user"}};
  ledger.algorithm = random.OneOf({Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                                   Algorithm::kSlidingWindow, Algorithm::kSlidingLog});
  ledger.limit = ledger.algorithm == Algorithm::kTokenBucket ? "10k/300day" : "10k/1day";
  ledger.strict = ledger.algorithm == Algorithm::kSlidingWindow && random.Chance(50);
  ledger.on_store_failure = random.OneOf({FailureMode::kOpen, FailureMode::kStatic});
  spec.rules.push_back(std::move(ledger));
  // How far ahead a bucket may be before its clock is taken for broken.
  spec.max_wait = random.Between(Duration(milliseconds(100)), Duration(seconds(2)));
  spec.max_wait -= spec.max_wait % milliseconds(1);
  return spec;
}

PolicySpec WithOtherLimits(PolicySpec spec, sim::Random& random) {
  for (RuleSpec& rule : spec.rules) {
    if (rule.name == kLedger || !random.Chance(60)) continue;
    // The period stays: another would begin anew.
    const Result<Limit> before = Limit::Parse(rule.limit, {.algorithm = rule.algorithm});
    rule.limit = LimitText(rule, before ? before->spec().period : DrawPeriod(random), random);
  }
  return spec;
}

}  // namespace weir::lab
