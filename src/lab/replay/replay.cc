#include "lab/replay/replay.h"

#include <algorithm>
#include <array>

#include "lab/replay/asked_attributes.h"
#include "lab/replay/decision_file.h"
#include "lab/replay/spread.h"

namespace weir::lab {
namespace {

constexpr std::size_t kBatch = 256;

class Player {
 public:
  Player(const ReplaySettings& settings, AskedAttributes& asked)
      : settings_(settings), asked_(asked), requests_(kBatch) {}

  Result<void> Begin(WallTime begin) {
    Result<std::unique_ptr<PolicyRun>> run = PolicyRun::Make(settings_.policy, begin);
    if (!run) return std::unexpected(run.error());
    run_ = *std::move(run);
    if (settings_.against) {
      run = PolicyRun::Make(*settings_.against, begin);
      if (!run) return std::unexpected(run.error());
      other_ = *std::move(run);
      denied_under_other_.resize(other_->rule_names().size() + 1);
      denied_before_.resize(run_->rule_names().size() + 1);
    }
    if (settings_.decisions.empty()) return {};
    Result<std::unique_ptr<DecisionFile>> file =
        DecisionFile::Create(settings_.decisions, settings_.logs.files);
    if (!file) return std::unexpected(file.error());
    decisions_ = *std::move(file);
    return {};
  }

  void Play(std::span<const LogRecord> records) {
    for (; !records.empty(); records = records.subspan(std::min(records.size(), kBatch))) {
      PlaySome(records.first(std::min(records.size(), kBatch)));
    }
  }

  void Finish(ReplayResult& result) {
    if (!run_) return;
    result.outcome = run_->Outcome(settings_.top);
    result.bins = run_->bins();
    if (other_) {
      result.against = other_->Outcome(settings_.top);
      result.newly_denied = ChangeOf(*other_, denied_under_other_, newly_denied_);
      result.newly_allowed = ChangeOf(*run_, denied_before_, newly_allowed_);
      result.change_bins = std::move(change_bins_);
    }
    if (!decisions_) return;
    if (const Result<void> written = decisions_->Finish(run_->rule_names()); !written) {
      result.decisions_failed = written.error().message;
    }
  }

 private:
  void PlaySome(std::span<const LogRecord> records) {
    const std::span<BatchRequest> requests = std::span(requests_).first(records.size());
    const std::size_t values = asked_.named_values();
    named_.resize(values * kBatch);
    texts_.Clear();
    for (std::size_t i = 0; i < records.size(); ++i) {
      asked_.MakeRequest(records[i], std::span(named_).subspan(i * values, values), texts_,
                         requests[i].request);
      requests[i].cost = records[i].cost;
    }
    run_->Check(requests, records);
    if (decisions_) {
      for (std::size_t i = 0; i < records.size(); ++i) {
        const Decision& decision = requests[i].answer.decision;
        decisions_->Add(records[i].file, records[i].line, decision, run_->RuleOf(decision));
      }
    }
    if (!other_) return;
    std::array<Answer, kBatch> before;
    for (std::size_t i = 0; i < records.size(); ++i) before[i] = requests[i].answer;
    other_->Check(requests, records);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Answer& after = requests[i].answer;
      if (before[i].decision.allowed == after.decision.allowed) continue;
      const bool newly_denied = before[i].decision.allowed;
      change_bins_.Add(records[i].time, newly_denied ? 0 : 1);
      if (newly_denied) {
        NoteChange(*other_, i, requests[i].request, after, denied_under_other_, newly_denied_);
      } else {
        NoteChange(*run_, i, requests[i].request, before[i], denied_before_, newly_allowed_);
      }
    }
  }

  // The request was denied by `run` and not by the other.
  static void NoteChange(PolicyRun& run, std::size_t number, const Request& request,
                         const Answer& answer, std::vector<std::uint64_t>& by_rule,
                         KeyTally& by_key) {
    const std::uint32_t rule = run.RuleOf(answer.decision);
    ++by_rule[std::min<std::size_t>(rule, by_rule.size() - 1)];
    if (rule == PolicyRun::kNoRule) return;
    const std::span<const RuleDecision> each = run.EachOf(number, answer);
    for (std::size_t i = 0; i < each.size(); ++i) {
      if (each[i].decision.rule.data() != answer.decision.rule.data()) continue;
      if (by_key.CountDenial(each[i].key).wants_name) {
        by_key.Name(each[i].key, rule, run.KeyOf(request, i));
      }
      return;
    }
  }

  ReplayChange ChangeOf(const PolicyRun& run, const std::vector<std::uint64_t>& by_rule,
                        const KeyTally& by_key) const {
    ReplayChange change;
    for (std::size_t i = 0; i < by_rule.size(); ++i) {
      change.requests += by_rule[i];
      if (by_rule[i] == 0) continue;
      const bool is_rule = i < run.rule_names().size();
      change.rules.push_back({.rule = is_rule ? run.rule_names()[i] : "", .requests = by_rule[i]});
    }
    change.keys = by_key.Top(settings_.top);
    return change;
  }

  const ReplaySettings& settings_;
  AskedAttributes& asked_;
  std::unique_ptr<PolicyRun> run_;
  std::unique_ptr<PolicyRun> other_;
  std::unique_ptr<DecisionFile> decisions_;
  std::vector<BatchRequest> requests_;
  std::vector<NamedValue> named_;
  Texts texts_;
  std::vector<std::uint64_t> denied_under_other_;  // By rule; the last is for lists.
  std::vector<std::uint64_t> denied_before_;
  KeyTally newly_denied_;
  KeyTally newly_allowed_;
  TimeBins change_bins_;
};

}  // namespace

Result<ReplayResult> Replay(const ReplaySettings& settings, std::istream& standard_input) {
  std::vector<const PolicySpec*> policies = {&settings.policy.spec()};
  if (settings.against) policies.push_back(&settings.against->spec());
  AskedAttributes asked(policies);
  LogSettings logs = settings.logs;
  logs.wanted = asked.Columns();
  logs.user_agent = asked.needs_user_agent();
  Result<std::unique_ptr<LogReader>> reader = LogReader::Open(logs, standard_input);
  if (!reader) return std::unexpected(reader.error());

  Spread spread(**reader);
  const auto next = [&] { return settings.spread ? spread.Next() : (*reader)->Next(); };
  ReplayResult result;
  Player player(settings, asked);
  std::span<const LogRecord> records = next();
  result.first = records.empty() ? WallTime() : records.front().time;
  // Also with nothing to play: a file for decisions that cannot be written is an error.
  if (Result<void> begun = player.Begin(result.first); !begun) {
    return std::unexpected(begun.error());
  }
  for (; !records.empty(); records = next()) {
    result.last = records.back().time;
    player.Play(records);
  }
  result.counts = (*reader)->counts();
  result.unanswered = asked.Unanswered();
  result.seconds_as_they_are = spread.as_they_are();
  player.Finish(result);
  return result;
}

}  // namespace weir::lab
