#include "server/serve.h"

#include <filesystem>
#include <memory>
#include <sstream>

#include <weir/engine.h>
#include <weir/policy_watcher.h>

#include "policy/store_address.h"
#include "server/check_config.h"
#include "server/embedded.h"
#include "server/kept_state.h"
#include "server/listener_watch.h"
#include "server/log.h"
#include "server/open_files.h"
#include "server/passed_sockets.h"
#include "server/service.h"
#include "server/signals.h"
#include "server/supervisor.h"
#include "server/watchdog.h"

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

// Where the state is. Without what is secret in that.
void TellStores(const PolicySpec& spec, const Log& log) {
  if (spec.store == PolicySpec().store) return log.Info("store", {{"address", "memory"}});
  for (const std::string& text : spec.store) {
    const Result<StoreAddress> address = StoreAddress::Parse(text);
    log.Info("store", {{"address", address ? address->ToString() : SchemeOf(text)}});
  }
}

// What whoever started the service is shown of it.
std::string StatusOf(Engine& engine) {
  return "serving version " + std::to_string(engine.Stats().version) + " of the policy, " +
         CountOf(engine.policy().spec().rules.size(), "rule");
}

// Tells the supervisor that all is well as long as every thread turns, and only then. None if it
// does not want to know.
std::unique_ptr<Watchdog> Watch(Service& service, const Supervisor& supervisor, const Log& log) {
  if (!supervisor.alive_every()) return nullptr;
  const auto look = [&, was_alive = true]() mutable {
    const bool is_alive = service.IsAlive();
    if (is_alive) supervisor.Alive();
    if (was_alive && !is_alive) log.Fail("a thread hangs; the supervisor is told of nothing");
    if (!was_alive && is_alive) log.Warn("the thread that hung goes on");
    was_alive = is_alive;
  };
  return std::make_unique<Watchdog>(*supervisor.alive_every(), look);
}

struct Running {
  Engine& engine;
  Service& service;
  PolicyWatcher& watcher;
};

void RunUntilStopped(const Signals& signals, const Running& running, const Supervisor& supervisor,
                     const Log& log) {
  while (signals.Wait() == Signal::kReload) {
    log.Info("SIGHUP: reading the policy again");
    supervisor.Reloading(SystemClock::Shared().Read().steady);
    running.watcher.Reload();
    running.service.RefreshListeners(true);
    supervisor.Ready(StatusOf(running.engine));
  }
}

// Each of its lines.
void PrintLines(const std::string& file, const std::string& text, std::ostream& out) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out << file << ": " << line << '\n';
}

}  // namespace

std::string FolderOf(const ServeOptions& options) {
  return std::filesystem::path(options.policy_file).parent_path().string();
}

int RunServe(const ServeOptions& options, const Console& console) {
  const Signals signals;
  const Log log(options.log);
  const Result<Supervisor> supervisor = Supervisor::FromEnvironment();
  Result<PassedSockets> passed = PassedSockets::FromEnvironment();
  if (!supervisor || !passed) {
    console.err << "weir: " << (supervisor ? passed.error() : supervisor.error()).message << '\n';
    return kExitProblems;
  }
  const PolicyReport report = Policy::Load(options.policy_file);
  if (!report.policy) {
    PrintProblems(report.problems, console.err);
    return kExitProblems;
  }
  for (const Problem& problem : report.problems) log.Warn(problem.ToString());
  const PolicySpec& spec = report.policy->spec();
  KeptState kept(*report.policy, log);
  Result<Engine> engine =
      kept.Resume({.on_notice = [&log](std::string_view notice) { log.Warn(notice); },
                   .max_waiters = static_cast<std::size_t>(spec.limits.waiters)});
  if (!engine) {
    console.err << options.policy_file << ": " << engine.error().message << '\n';
    return kExitProblems;
  }
  if (const auto too_few = MakeRoomForConnections(spec.limits.connections)) log.Warn(*too_few);
  const auto service =
      Service::Start(*engine, spec, log,
                     {.threads = options.threads, .folder = FolderOf(options), .passed = &*passed});
  if (!service) {
    PrintLines(options.policy_file, service.error().message, console.err);
    return kExitProblems;
  }
  const auto on_event = [&](const ReloadEvent& event) {
    log.Write(LevelOf(event.outcome), event.ToString());
    const bool applied = event.outcome == ReloadEvent::Outcome::kApplied;
    if (applied) {
      const Policy policy = engine->policy();
      const PolicySpec& changed = policy.spec();
      (*service)->Apply(changed);
      if (const auto too_few = MakeRoomForConnections(changed.limits.connections)) {
        log.Warn(*too_few);
      }
      if (event.change.store_changed) TellStores(changed, log);
      kept.Apply(policy);
    }
    if (event.outcome != ReloadEvent::Outcome::kUnchanged) (*service)->CountReload(applied);
  };
  auto watcher = PolicyWatcher::Start(*engine, options.policy_file,
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
  if (!supervisor->Ready(StatusOf(*engine))) log.Warn("NOTIFY_SOCKET: nobody reads it");
  const auto watchdog = Watch(**service, *supervisor, log);
  RunUntilStopped(signals, {.engine = *engine, .service = **service, .watcher = **watcher},
                  *supervisor, log);
  log.Info("told to stop");
  supervisor->Stopping();
  (*service)->Drain(kDrainTime);
  log.Info("all connections have ended");
  watcher->reset();  // From here on the policy is what it is.
  return kept.Keep(*engine) ? kExitOk : kExitProblems;
}

}  // namespace weir
