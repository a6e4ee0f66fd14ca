#include "lab/calibrate/calibrate.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "lab/calibrate/behaviour.h"
#include "lab/calibrate/burst_needs.h"
#include "lab/calibrate/chosen_values.h"
#include "lab/calibrate/client_table.h"
#include "lab/calibrate/policy_text.h"
#include "lab/calibrate/policy_trial.h"
#include "lab/calibrate/proposal.h"
#include "lab/log/log_account.h"

namespace weir::lab {
namespace {

constexpr std::size_t kMostNamed = 1'000;
constexpr std::size_t kTimelineSteps = 240;

// "line 3: no time: garbage", of those that could not be used.
std::string FirstExample(const std::vector<LogCounts>& logs) {
  for (const LogCounts& log : logs) {
    if (log.examples.empty()) continue;
    const LogCounts::Example& example = log.examples.front();
    return "; the first is " + log.file + ", line " + std::to_string(example.line) + ": " +
           example.why + ": " + example.text;
  }
  return "";
}

// So long that a timeline has at most kTimelineSteps or so, and that people have a word for it.
Duration StepFor(Duration span) {
  constexpr std::array<int, 16> kSeconds = {1,   2,   5,     10,    15,    30,     60,     120,
                                            300, 600, 1'800, 3'600, 7'200, 21'600, 43'200, 86'400};
  for (const int seconds : kSeconds) {
    const Duration step = std::chrono::seconds(seconds);
    if (span / step < static_cast<std::int64_t>(kTimelineSteps)) return step;
  }
  const Duration day = std::chrono::hours(24);
  return (span / static_cast<std::int64_t>(kTimelineSteps) / day + 1) * day;
}

class Calibrator {
 public:
  Calibrator(const ClientKey& key, const CalibrationSettings& settings, const OpenLogs& open)
      : key_(key), open_(open) {
    found_.settings = settings;
    found_.key = key.text();
    found_.key_columns = key.columns();
    found_.chosen_part = key.chosen_part();
  }

  Result<Calibration> Run() {
    if (const Result<void> read = CountPeaks(); !read) return std::unexpected(read.error());
    apart_ = LearnBehaviour(clients_, found_);
    if (found_.behaviour.empty()) {
      return std::unexpected(Error{ErrorCode::kInvalidArgument,
                                   "the log lasts for less than a second: nothing can be learnt "
                                   "from it about how often clients come"});
    }
    PickAbusers();
    if (const Result<void> read = MeasureBursts(); !read) return std::unexpected(read.error());
    if (const Result<void> read = TryOut(); !read) return std::unexpected(read.error());
    found_.policy = PolicyTextOf(found_, key_, Comments::kAll);
    return std::move(found_);
  }

 private:
  Result<void> CountPeaks() {
    Result<std::unique_ptr<LogReader>> reader = open_(1);
    if (!reader) return std::unexpected(reader.error());
    std::chrono::sys_seconds second{};
    std::uint64_t in_second = 0;
    for (auto batch = (*reader)->Next(); !batch.empty(); batch = (*reader)->Next()) {
      for (const LogRecord& record : batch) {
        ++records_;
        const std::optional<std::uint64_t> hash = key_.HashOf(RequestOf(record));
        if (!hash) {
          ++found_.without_key;
          continue;
        }
        if (found_.requests == 0) found_.first = record.time;
        found_.last = record.time;
        ++found_.requests;
        found_.has_costs = found_.has_costs || record.cost != 1;
        const auto now = std::chrono::floor<std::chrono::seconds>(record.time);
        in_second = now == second ? in_second + 1 : 1;
        second = now;
        found_.busiest_second = std::max(found_.busiest_second, in_second);
        clients_.Count(*hash, record.time);
      }
    }
    found_.logs = (*reader)->counts();
    found_.whole_seconds = std::ranges::all_of(found_.logs, &LogCounts::whole_seconds);
    found_.clients = clients_.size();
    NoteMemory(0);
    return found_.requests > 0 ? Result<void>() : std::unexpected(NothingToLearnFrom());
  }

  Error NothingToLearnFrom() const {
    if (records_ > 0) {
      return {ErrorCode::kInvalidArgument, "none of the " + Grouped(records_) +
                                               " requests in the log has what --key " +
                                               key_.text() + " asks for"};
    }
    return {ErrorCode::kInvalidArgument,
            "no line of the log could be used, and " +
                Grouped(AccountOf(found_.logs, found_.settings.horizon).left_out) +
                " had to be left out" + FirstExample(found_.logs)};
  }

  // Names come with the next reading: only of those who will be shown.
  void PickAbusers() {
    std::vector<ClientId> apart;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const auto id = static_cast<ClientId>(i);
      if (!apart_.Has(id)) continue;
      apart.push_back(id);
      found_.abuser_requests += clients_[id].requests;
    }
    found_.abuser_count = apart.size();
    std::ranges::sort(apart, [&](ClientId a, ClientId b) {
      const std::uint64_t more = clients_[a].requests;
      const std::uint64_t less = clients_[b].requests;
      return more != less ? more > less : a < b;
    });
    apart.resize(std::min(apart.size(), kMostNamed));
    for (const ClientId id : apart) {
      shown_.emplace(id, found_.abusers.size());
      found_.abusers.push_back(Describe(clients_[id]));
    }
  }

  Abuser Describe(const Client& client) const {
    Abuser abuser{
        .requests = client.requests,
        .share = static_cast<double>(client.requests) / static_cast<double>(found_.requests),
        .first = client.first,
        .last = client.last};
    for (std::size_t i = 0; i < kPeriods; ++i) abuser.peaks[i] = client.windows[i].peak();
    for (const Behaviour& behaviour : found_.behaviour) {
      const double times = static_cast<double>(abuser.peaks[behaviour.period]) /
                           std::max(1U, behaviour.normal.largest);
      if (times <= abuser.times) continue;
      abuser.times = times;
      abuser.why = behaviour.period;
    }
    return abuser;
  }

  // Those of the first reading once more; `visit` is told who it was.
  template <typename Visit>
  Result<void> ReadAgain(int time, const Visit& visit) {
    Result<std::unique_ptr<LogReader>> reader = open_(time);
    if (!reader) return std::unexpected(reader.error());
    std::uint64_t records = 0;
    std::uint64_t known = 0;
    // What has been added to a log since is left for the next time.
    for (auto batch = (*reader)->Next(); !batch.empty() && records < records_;
         batch = (*reader)->Next()) {
      for (const LogRecord& record : batch) {
        if (records == records_) break;
        ++records;
        const Request request = RequestOf(record);
        const std::optional<std::uint64_t> hash = key_.HashOf(request);
        if (!hash) continue;
        const std::optional<ClientId> id = clients_.Find(*hash);
        if (!id) continue;
        ++known;
        visit(*id, request, record);
      }
    }
    if (known != found_.requests) found_.changed_meanwhile = true;
    return {};
  }

  Result<void> MeasureBursts() {
    ProposedRule base = BaseRule(found_, key_.rule_name());
    BurstNeeds needs(clients_.size(), base.count, kAllPeriods[base.period].length);
    ChosenValues chosen;
    const Result<void> read =
        ReadAgain(2, [&](ClientId id, const Request& request, const LogRecord& record) {
          needs.Count(id, record.time);
          if (!found_.chosen_part.empty()) {
            chosen.Count(ClientKey::ChosenValue(request, found_.chosen_part));
          }
          if (!apart_.Has(id)) return;
          const auto shown = shown_.find(id);
          if (shown == shown_.end()) return;
          Abuser& abuser = found_.abusers[shown->second];
          if (!abuser.name.empty()) return;
          abuser.name = key_.NameOf(request);
          abuser.first_line = record.line;
          abuser.first_file = record.file;
        });
    if (!read) return read;
    ChosenValues::Listed listed = chosen.List();
    found_.chosen_values = std::move(listed.values);
    found_.chosen_requests = listed.requests;
    found_.chosen_left_out = listed.left_out;
    if (!found_.chosen_part.empty() && found_.chosen_values.empty()) {
      return std::unexpected(
          Error{ErrorCode::kInvalidArgument,
                "--key " + key_.text() + ": a rule by " + found_.chosen_part +
                    " has to name the values that it is for, and none in the log can be named: "
                    "they are longer than 80 bytes, or have signs that stand for others"});
    }
    ProposeRules(clients_, apart_, needs, std::move(base), found_);
    NoteMemory(needs.bytes());
    return {};
  }

  Result<void> TryOut() {
    std::vector<std::string> names;
    names.reserve(found_.rules.size());
    for (const ProposedRule& rule : found_.rules) names.push_back(rule.name);
    Result<PolicyTrial> trial =
        PolicyTrial::Begin(PolicyTextOf(found_, key_, Comments::kNone), names, found_.first);
    if (!trial) return std::unexpected(trial.error());
    BeginTimeline();
    std::vector<std::uint8_t> denied_by(clients_.size());
    const Result<void> read =
        ReadAgain(3, [&](ClientId id, const Request& request, const LogRecord& record) {
          const std::uint8_t denied = trial->Try(request, record.time);
          denied_by[id] = static_cast<std::uint8_t>(denied_by[id] | denied);
          Note(id, denied, record.time);
        });
    if (!read) return read;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const auto id = static_cast<ClientId>(i);
      NoteClient(apart_.Has(id), denied_by[id]);
    }
    NoteMemory(denied_by.capacity() + trial->bytes());
    return {};
  }

  void BeginTimeline() {
    RequestCurve& timeline = found_.timeline;
    timeline.step = StepFor(found_.last - found_.first);
    timeline.from = WallTime(found_.first.time_since_epoch() / timeline.step * timeline.step);
    const auto steps = static_cast<std::size_t>((found_.last - timeline.from) / timeline.step) + 1;
    timeline.normal.assign(steps, 0);
    timeline.abusers.assign(steps, 0);
    timeline.denied.assign(steps, 0);
  }

  void Note(ClientId id, std::uint8_t denied, WallTime time) {
    RequestCurve& timeline = found_.timeline;
    const auto step = std::min(static_cast<std::size_t>((time - timeline.from) / timeline.step),
                               timeline.normal.size() - 1);
    const bool is_apart = apart_.Has(id);
    ++(is_apart ? timeline.abusers : timeline.normal)[step];
    if (denied == 0) return;
    ++timeline.denied[step];
    const auto count = [&](Denials& denials) {
      ++(is_apart ? denials.abuser_requests : denials.normal_requests);
    };
    count(found_.denials);
    for (std::size_t rule = 0; rule < found_.rules.size(); ++rule) {
      if ((denied >> rule & 1U) != 0) count(found_.rules[rule].denials);
    }
    if (!is_apart) return;
    const auto shown = shown_.find(id);
    if (shown != shown_.end()) ++found_.abusers[shown->second].denied;
  }

  void NoteClient(bool is_apart, std::uint8_t denied_by) {
    if (denied_by == 0) return;
    const auto count = [&](Denials& denials) {
      ++(is_apart ? denials.abusers : denials.normal_clients);
    };
    count(found_.denials);
    for (std::size_t rule = 0; rule < found_.rules.size(); ++rule) {
      if ((denied_by >> rule & 1U) != 0) count(found_.rules[rule].denials);
    }
  }

  void NoteMemory(std::size_t more) {
    found_.memory_bytes = std::max(found_.memory_bytes, clients_.bytes() + more);
  }

  const ClientKey& key_;
  const OpenLogs& open_;
  Calibration found_{};
  ClientTable clients_{};
  SetApart apart_{0};
  std::uint64_t records_ = 0;
  std::unordered_map<ClientId, std::size_t> shown_{};  // Their places among the abusers.
};

}  // namespace

Result<Calibration> Calibrate(const ClientKey& key, const CalibrationSettings& settings,
                              const OpenLogs& open) {
  return Calibrator(key, settings, open).Run();
}

}  // namespace weir::lab
