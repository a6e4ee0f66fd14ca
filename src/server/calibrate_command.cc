#include "server/calibrate_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "lab/calibrate/calibrate.h"
#include "lab/calibrate/calibrate_report.h"
#include "lab/log/log_account.h"
#include "lab/progress.h"
#include "lab/report.h"
#include "server/output_file.h"
#include "server/replace_file.h"
#include "server/spooled_input.h"

namespace weir {
namespace {

constexpr const char* kSaid = "weir calibrate: ";

// Opens the same logs again and again, also if they come from standard input.
class Logs {
 public:
  Logs(lab::LogSettings settings, const Console& console)
      : settings_(std::move(settings)), console_(console) {}

  // Keeps what can be read only once.
  Result<void> Prepare() {
    for (const std::string& file : settings_.files) {
      std::error_code error;
      if (!std::filesystem::is_fifo(file, error)) continue;
      return std::unexpected(Error{
          ErrorCode::kInvalidArgument,
          file + ": it is a pipe, which can be read only once: give it as standard input (-)"});
    }
    const auto inputs = std::ranges::count(settings_.files, kStandardInput);
    if (inputs == 0) return {};
    if (inputs > 1) {
      return std::unexpected(
          Error{ErrorCode::kInvalidArgument, "standard input (-) can be named once"});
    }
    Result<SpooledInput> taken = SpooledInput::Take(console_.in);
    if (!taken) return std::unexpected(taken.error());
    spooled_.emplace(*std::move(taken));
    return {};
  }

  Result<std::unique_ptr<lab::LogReader>> Open(int time) {
    progress_.emplace(
        lab::Progress::Options{.out = console_.err_is_terminal ? &console_.err : nullptr,
                               .what = "lines (" + std::to_string(time) + " of 3)"});
    settings_.progress = &*progress_;
    if (!spooled_) return lab::LogReader::Open(settings_, console_.in);
    input_ = spooled_->Open();
    return lab::LogReader::Open(settings_, input_);
  }

  void Finish() { progress_.reset(); }

 private:
  lab::LogSettings settings_;
  const Console& console_;
  std::optional<SpooledInput> spooled_;
  std::ifstream input_;
  std::optional<lab::Progress> progress_;
};

// A service may watch a policy that is there already, and must never see a half of the new one.
Result<void> WritePolicy(const std::string& file, const std::string& text) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) ? ReplaceFile(file, text)
                                                       : WriteOutputFile(file, text);
}

// Everything that is wanted, as far as it can be written. False if something cannot.
bool WriteResults(const CalibrateOptions& options, const lab::Calibration& learnt,
                  const Console& console) {
  bool well = true;
  const auto note = [&](const Result<void>& written) {
    if (!written) console.err << kSaid << written.error().message << '\n';
    well = well && written.has_value();
  };
  if (!options.policy.empty() && options.policy != kStandardInput) {
    note(WritePolicy(options.policy, learnt.policy));
  }
  if (!options.html.empty()) {
    note(WriteOutputFile(options.html, lab::ReportPage(lab::ReportOf(learnt))));
  }
  if (options.policy == kStandardInput) {
    for (const auto& all : {lab::WarningsOf(learnt), lab::CaveatsOf(learnt)}) {
      for (const std::string& one : all) console.err << kSaid << one << '\n';
    }
    console.out << learnt.policy;
  } else if (options.json) {
    console.out << lab::JsonOf(learnt);
  } else {
    console.out << lab::ReportText(lab::ReportOf(learnt), {.color = console.out_is_terminal});
  }
  return well;
}

int Fail(const Console& console, const Error& error, int code) {
  console.err << kSaid << error.message << '\n';
  return code;
}

}  // namespace

int RunCalibrate(const CalibrateOptions& options, const Console& console) {
  // The bounds of the command line let through what is no number.
  if (std::isnan(options.quantile) || std::isnan(options.margin)) {
    return Fail(console, {ErrorCode::kInvalidArgument, "--quantile and --margin are numbers"},
                kExitUsage);
  }
  const std::string policy = options.policy == kStandardInput ? "" : options.policy;
  if (const Result<void> right = CheckOutputs(options.logs.files, {policy, options.html}); !right) {
    return Fail(console, right.error(), kExitUsage);
  }
  Result<lab::LogSettings> settings = SettingsOf(options.logs);
  if (!settings) return Fail(console, settings.error(), kExitUsage);
  const Result<double> max_bad = ParsePercent("--max-bad", options.logs.max_bad);
  if (!max_bad) return Fail(console, max_bad.error(), kExitUsage);
  const Result<lab::ClientKey> key = lab::ClientKey::Parse(options.key, settings->columns);
  if (!key) return Fail(console, key.error(), kExitUsage);
  settings->columns.insert(settings->columns.end(), key->columns().begin(), key->columns().end());
  const lab::CalibrationSettings wanted{
      .quantile = options.quantile / 100, .margin = options.margin, .horizon = settings->horizon};

  Logs logs(*std::move(settings), console);
  if (const Result<void> ready = logs.Prepare(); !ready) {
    return Fail(console, ready.error(), kExitProblems);
  }
  const Result<lab::Calibration> learnt =
      lab::Calibrate(*key, wanted, [&](int time) { return logs.Open(time); });
  logs.Finish();
  if (!learnt) return Fail(console, learnt.error(), kExitProblems);

  const bool written = WriteResults(options, *learnt, console);
  const lab::LogAccount account = lab::AccountOf(learnt->logs, wanted.horizon);
  if (learnt->is_partial()) {
    console.err << kSaid << "this is about a part of the log only, as is said above\n";
    return kExitProblems;
  }
  if (account.left_out_share > *max_bad) {
    console.err << kSaid << lab::WriteValue(account.left_out_share, lab::Unit::kPercent)
                << " of the lines were left out, more than --max-bad " << options.logs.max_bad
                << '\n';
    return kExitProblems;
  }
  return written ? kExitOk : kExitProblems;
}

}  // namespace weir
