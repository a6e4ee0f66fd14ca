#include "server/serve.h"

#include <weir/engine.h>
#include <weir/policy_watcher.h>

#include "server/check_config.h"
#include "server/embedded.h"
#include "server/log.h"
#include "server/signals.h"

namespace weir {
namespace {

Log::Level LevelOf(ReloadEvent::Outcome outcome) {
  switch (outcome) {
    case ReloadEvent::Outcome::kBroken:
      return Log::Level::kError;
    case ReloadEvent::Outcome::kSuspicious:
      return Log::Level::kWarning;
    default:
      return Log::Level::kInfo;
  }
}

// Nobody should wait for an answer on a port that nothing listens on.
void SayWhatIsMissing(const PolicySpec& spec, const Log& log) {
  std::string listeners;
  for (const auto& [protocol, listener] : spec.listen) {
    listeners += (listeners.empty() ? "" : ", ") + protocol + " " + listener.address;
  }
  log.Warn("nothing listens yet: listeners come in a later version" +
           (listeners.empty() ? "" : " (" + listeners + ": checked, not opened)"));
}

void RunUntilStopped(const Signals& signals, PolicyWatcher& watcher, const Log& log) {
  while (signals.Wait() == Signal::kReload) {
    log.Info("SIGHUP: reading the policy again");
    watcher.Reload();
  }
}

}  // namespace

int RunServe(const ServeOptions& options, const Console& console) {
  const Signals signals;
  const Log log;
  const PolicyReport report = Policy::Load(options.policy_file);
  if (!report.policy) {
    PrintProblems(report.problems, console.err);
    return kExitProblems;
  }
  for (const Problem& problem : report.problems) log.Warn(problem.ToString());
  Result<Engine> engine = Engine::Make(
      *report.policy, {.on_notice = [&log](std::string_view notice) { log.Warn(notice); }});
  if (!engine) {
    console.err << options.policy_file << ": " << engine.error().message << '\n';
    return kExitProblems;
  }
  const auto watcher =
      PolicyWatcher::Start(*engine, options.policy_file,
                           {.on_event =
                                [&log](const ReloadEvent& event) {
                                  log.Write(LevelOf(event.outcome), event.ToString());
                                },
                            .force = options.force_reload});
  if (!watcher) {
    console.err << options.policy_file << ": " << watcher.error().message << '\n';
    return kExitProblems;
  }
  log.Info("weir " + std::string(ProgramVersion()) + ": " + options.policy_file + ": version 1, " +
           CountOf(report.policy->spec().rules.size(), "rule"));
  SayWhatIsMissing(report.policy->spec(), log);
  console.out << "ready\n" << std::flush;
  RunUntilStopped(signals, **watcher, log);
  log.Info("told to stop");
  return kExitOk;
}

}  // namespace weir
