#include "server/serve_check.h"

#include <sstream>

#include <weir/engine.h>

#include "engine/shared_place.h"
#include "policy/policy_compiler.h"
#include "server/check_config.h"
#include "server/open_files.h"
#include "server/passed_sockets.h"
#include "server/service.h"
#include "server/snapshot_file.h"
#include "server/store_check.h"

namespace weir {
namespace {

// What was found, one line for each.
class CheckFindings {
 public:
  CheckFindings(const std::string& file, std::ostream& out) : file_(file), out_(out) {}

  void Warn(std::string_view text) { warnings_ += Print("warning: ", text); }
  void Fail(std::string_view text) { errors_ += Print("error: ", text); }
  void Take(const std::vector<Problem>& problems) {
    PrintProblems(problems, out_);
    for (const Problem& problem : problems) {
      ++(problem.severity == Severity::kError ? errors_ : warnings_);
    }
  }
  int Conclude(const std::string& result) const {
    out_ << file_ << ": "
         << (errors_ > 0 ? CountOf(errors_, "error") + ", " + CountOf(warnings_, "warning")
                         : result + (warnings_ > 0 ? ", " + CountOf(warnings_, "warning") : ""))
         << '\n';
    return errors_ > 0 ? kExitProblems : kExitOk;
  }

 private:
  std::size_t Print(std::string_view kind, std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      out_ << file_ << ": " << kind << line << '\n';
    }
    return count;
  }

  const std::string& file_;
  std::ostream& out_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
};

// As Engine::Make has it, but for the thread that tells others in the store that this process is
// there: it is not, and N would be one too many for a while.
Result<Engine> MakeQuietEngine(const Policy& policy) {
  if (!HasSharedStore(policy.spec())) return Engine::Make(policy);
  Result<std::unique_ptr<SharedPlace>> place = MakeRedisPlace(policy, {});
  if (!place) return std::unexpected(Error{place.error().code, "store: " + place.error().message});
  return EngineParts::Make(policy, {}, *std::move(place), EngineParts::Threads::kNone);
}

void CheckService(const Policy& policy, const ServeOptions& options, PassedSockets& passed,
                  CheckFindings& findings) {
  const PolicySpec& spec = policy.spec();
  Result<Engine> engine = MakeQuietEngine(policy);
  if (!engine) return findings.Fail(engine.error().message);
  if (const auto too_few = MakeRoomForConnections(spec.limits.connections)) {
    findings.Warn(*too_few);
  }
  if (const Result<void> usable = CheckSnapshot(policy); !usable) {
    findings.Warn(usable.error().message);
  }
  const Log log(options.log);
  const auto service = Service::Start(*engine, spec, log,
                                      {.threads = options.threads,
                                       .folder = FolderOf(options),
                                       .passed = &passed,
                                       .only_check = true});
  if (!service) return findings.Fail(service.error().message);
  for (const std::string& warning : (*service)->warnings()) findings.Warn(warning);
}

}  // namespace

int RunServeCheck(const ServeOptions& options, const Console& console) {
  CheckFindings findings(options.policy_file, console.out);
  Result<PassedSockets> passed = PassedSockets::FromEnvironment();
  if (!passed) findings.Fail(passed.error().message);
  const PolicyReport report = Policy::Load(options.policy_file);
  findings.Take(report.problems);
  if (!report.policy || !passed) return findings.Conclude("");
  CheckService(*report.policy, options, *passed, findings);
  const auto unreachable = FindUnreachableServers(
      *report.policy, [&](std::string_view notice) { findings.Warn(notice); });
  for (const std::string& line : unreachable) findings.Warn(line);
  return findings.Conclude("would start, " + CountOf(report.policy->spec().rules.size(), "rule"));
}

}  // namespace weir
