#include "server/serve.h"

#include <filesystem>

#include <weir/engine.h>
#include <weir/policy_watcher.h>

#include "policy/store_address.h"
#include "server/check_config.h"
#include "server/embedded.h"
#include "server/kept_state.h"
#include "server/listener_watch.h"
#include "server/log.h"
#include "server/open_files.h"
#include "server/service.h"
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

// How long those who are connected when the service is told to stop may go on.
constexpr Duration kDrainTime = std::chrono::seconds(5);

// Every connection is an open file.
void MakeRoomForConnections(std::int64_t connections, const Log& log) {
  constexpr std::size_t kOthers = 64;
  const std::size_t files = RaiseOpenFiles();
  if (files >= static_cast<std::size_t>(connections) + kOthers) return;
  log.Warn(
      "limits: connections: only " + std::to_string(files) +
      " files may be open at a time, which is too few for " + std::to_string(connections) +
      " connections; raise the limit of the system (ulimit -n, LimitNOFILE) or lower this one");
}

// Where the state is, if it is shared. Without what is secret in that.
void TellStores(const PolicySpec& spec, const Log& log) {
  if (spec.store == PolicySpec().store) return;
  for (const std::string& text : spec.store) {
    const Result<StoreAddress> address = StoreAddress::Parse(text);
    log.Info("store", {{"address", address ? address->ToString() : SchemeOf(text)}});
  }
}

void RunUntilStopped(const Signals& signals, PolicyWatcher& watcher, Service& service,
                     const Log& log) {
  while (signals.Wait() == Signal::kReload) {
    log.Info("SIGHUP: reading the policy again");
    watcher.Reload();
    service.RefreshListeners(true);
  }
}

std::string FolderOf(const std::string& file) {
  return std::filesystem::path(file).parent_path().string();
}

}  // namespace

int RunServe(const ServeOptions& options, const Console& console) {
  const Signals signals;
  const Log log(options.log);
  const PolicyReport report = Policy::Load(options.policy_file);
  if (!report.policy) {
    PrintProblems(report.problems, console.err);
    return kExitProblems;
  }
  for (const Problem& problem : report.problems) log.Warn(problem.ToString());
  const PolicySpec& spec = report.policy->spec();
  Result<Engine> engine =
      ResumeEngine(*report.policy,
                   {.on_notice = [&log](std::string_view notice) { log.Warn(notice); },
                    .max_waiters = static_cast<std::size_t>(spec.limits.waiters)},
                   log);
  if (!engine) {
    console.err << options.policy_file << ": " << engine.error().message << '\n';
    return kExitProblems;
  }
  MakeRoomForConnections(spec.limits.connections, log);
  const auto service = Service::Start(
      *engine, spec, log, {.threads = options.threads, .folder = FolderOf(options.policy_file)});
  if (!service) {
    console.err << options.policy_file << ": " << service.error().message << '\n';
    return kExitProblems;
  }
  const auto on_event = [&](const ReloadEvent& event) {
    log.Write(LevelOf(event.outcome), event.ToString());
    const bool applied = event.outcome == ReloadEvent::Outcome::kApplied;
    if (applied) {
      const PolicySpec changed = engine->policy().spec();
      (*service)->Apply(changed);
      if (changed.memory.snapshot != spec.memory.snapshot) {
        log.Warn("memory: snapshot is that of the start; restart to change it");
      }
    }
    if (event.outcome != ReloadEvent::Outcome::kUnchanged) (*service)->CountReload(applied);
  };
  const auto watcher = PolicyWatcher::Start(*engine, options.policy_file,
                                            {.on_event = on_event, .force = options.force_reload});
  if (!watcher) {
    console.err << options.policy_file << ": " << watcher.error().message << '\n';
    return kExitProblems;
  }
  const auto listener_watch = ListenerWatch::Start([&] {
    (*service)->RefreshListeners(false);
    return (*service)->ListenerFiles();
  });
  if (!listener_watch) {
    console.err << options.policy_file << ": " << listener_watch.error().message << '\n';
    return kExitProblems;
  }
  log.Info("weir " + std::string(ProgramVersion()) + ": " + options.policy_file + ": version 1",
           {{"rules", std::to_string(spec.rules.size())},
            {"threads", std::to_string((*service)->threads())}});
  TellStores(spec, log);
  for (const std::string& warning : (*service)->warnings()) log.Warn(warning);
  for (const auto& [protocol, address] : (*service)->addresses()) {
    log.Info("listening", {{"protocol", protocol}, {"address", address}});
  }
  console.out << "ready\n" << std::flush;
  RunUntilStopped(signals, **watcher, **service, log);
  log.Info("told to stop");
  (*service)->Drain(kDrainTime);
  log.Info("all connections have ended");
  return KeepState(*engine, *report.policy, log) ? kExitOk : kExitProblems;
}

}  // namespace weir
