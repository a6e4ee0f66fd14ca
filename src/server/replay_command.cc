#include "server/replay_command.h"

#include <algorithm>
#include <optional>

#include "lab/progress.h"
#include "lab/replay/replay.h"
#include "lab/replay/replay_report.h"
#include "lab/report.h"
#include "server/check_config.h"
#include "server/output_file.h"
#include "server/policy_in_memory.h"
#include "server/secrets.h"

namespace weir {
namespace {

using lab::ReplayResult;
using lab::ReplaySettings;
using lab::ReplayShown;

bool HoldsPlaces(const RuleSpec& rule, const PolicySpec& policy) {
  if (rule.algorithm == Algorithm::kConcurrency) return true;
  const auto says_so = [](const std::string& limit) { return limit.contains("concurrent"); };
  if (says_so(rule.limit)) return true;
  for (const auto& [name, tier] : policy.tiers) {
    const auto limit = tier.find(rule.tier_limit);
    if (!rule.tier_limit.empty() && limit != tier.end() && says_so(limit->second)) return true;
  }
  return false;
}

// The policy as it can be replayed; none if it cannot be used, which was said then.
std::optional<Policy> PolicyFor(const std::string& file, const Console& console,
                                std::vector<std::string>& warnings) {
  const PolicyReport report = LoadPolicy(file, console.in);
  if (!report.policy) {
    PrintProblems(report.problems, console.err);
    return std::nullopt;
  }
  PolicySpec spec = SpecInMemory(*report.policy, file);
  bool changed = spec.store != report.policy->spec().store;
  for (RuleSpec& rule : spec.rules) {
    if (rule.mode == RuleMode::kOff || !HoldsPlaces(rule, spec)) continue;
    rule.mode = RuleMode::kOff;
    changed = true;
    warnings.push_back(rule.name + " of " + file +
                       " was left out: it counts requests that are under way at a time, and a log "
                       "does not say when they ended.");
  }
  if (!changed) return report.policy;
  PolicyReport made = Policy::Make(std::move(spec));
  if (!made.policy) PrintProblems(made.problems, console.err);
  return made.policy;
}

// Why it does not end well, one sentence each.
std::vector<std::string> WhyNot(const ReplayResult& result, std::optional<double> most_denied,
                                double most_bad) {
  std::vector<std::string> reasons;
  const auto percent = [](double share) { return lab::WriteValue(share, lab::Unit::kPercent); };
  const lab::LogAccount account = lab::AccountOf(result.counts, {});
  if (account.is_cut_short) reasons.emplace_back("not all of the log could be read");
  if (account.left_out_share > most_bad) {
    reasons.push_back(percent(account.left_out_share) +
                      " of the lines were left out, more than the " + percent(most_bad) +
                      " of --max-bad");
  }
  if (result.outcome.requests == 0) reasons.emplace_back("there was not one request");
  if (!result.decisions_failed.empty()) reasons.push_back(result.decisions_failed);
  if (most_denied && result.outcome.denied_share() > *most_denied) {
    reasons.push_back(percent(result.outcome.denied_share()) +
                      " of the requests were denied, more than the " + percent(*most_denied) +
                      " of --fail-if-denied");
  }
  return reasons;
}

// What is shown may be shown to others.
void HideSecrets(const ReplaySettings& settings, ReplayResult& result) {
  const auto hide = [](const Policy& policy, std::vector<lab::TalliedKey>& keys) {
    const Secrets secrets(policy.spec());
    for (lab::TalliedKey& key : keys) key.key = secrets.InKey(key.key);
  };
  hide(settings.policy, result.outcome.offenders);
  hide(settings.policy, result.newly_allowed.keys);
  if (!settings.against) return;
  hide(*settings.against, result.against->offenders);
  hide(*settings.against, result.newly_denied.keys);
}

int WrongCall(const Error& error, const Console& console) {
  console.err << "weir: " << error.message << "\nTry weir replay --help.\n";
  return kExitUsage;
}

}  // namespace

int RunReplay(const ReplayOptions& options, const Console& console) {
  std::vector<std::string> inputs = options.logs.files;
  inputs.push_back(options.policy_file);
  inputs.push_back(options.against);
  if (std::ranges::count(inputs, kStandardInput) > 1) {
    return WrongCall({ErrorCode::kInvalidArgument, "standard input can be read only once"},
                     console);
  }
  if (const Result<void> right = CheckOutputs(inputs, {options.decisions, options.html}); !right) {
    return WrongCall(right.error(), console);
  }
  Result<lab::LogSettings> logs = SettingsOf(options.logs);
  if (!logs) return WrongCall(logs.error(), console);
  const Result<double> most_bad = ParsePercent("--max-bad", options.logs.max_bad);
  if (!most_bad) return WrongCall(most_bad.error(), console);
  std::optional<double> most_denied;
  if (options.fail_if_denied) {
    const Result<double> share = ParsePercent("--fail-if-denied", *options.fail_if_denied);
    if (!share) return WrongCall(share.error(), console);
    most_denied = *share;
  }

  ReplayShown shown{.policy = options.policy_file,
                    .against = options.against,
                    .spread = options.spread,
                    .horizon = logs->horizon};
  const std::optional<Policy> policy = PolicyFor(options.policy_file, console, shown.warnings);
  if (!policy) return kExitProblems;
  ReplaySettings settings{.logs = *std::move(logs),
                          .policy = *policy,
                          .decisions = options.decisions,
                          .top = static_cast<std::size_t>(options.top),
                          .spread = options.spread};
  if (!options.against.empty()) {
    settings.against = PolicyFor(options.against, console, shown.warnings);
    if (!settings.against) return kExitProblems;
  }

  std::optional<lab::Progress> progress;
  progress.emplace(lab::Progress::Options{.out = console.err_is_terminal ? &console.err : nullptr});
  settings.logs.progress = &*progress;
  Result<ReplayResult> result = lab::Replay(settings, console.in);
  progress.reset();
  if (!result) {
    console.err << "weir replay: " << result.error().message << '\n';
    return kExitProblems;
  }
  HideSecrets(settings, *result);
  const lab::Report report = lab::ReportOf(*result, shown);
  console.out << (options.json ? lab::JsonOf(*result, shown)
                               : lab::ReportText(report, {.color = console.out_is_terminal}));
  std::vector<std::string> reasons = WhyNot(*result, most_denied, *most_bad);
  if (!options.html.empty()) {
    const Result<void> written = WriteOutputFile(options.html, lab::ReportPage(report));
    if (!written) reasons.push_back(written.error().message);
  }
  for (const std::string& reason : reasons) console.err << "weir replay: " << reason << '\n';
  return reasons.empty() ? kExitOk : kExitProblems;
}

}  // namespace weir
