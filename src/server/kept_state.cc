#include "server/kept_state.h"

#include <utility>

#include "server/snapshot_file.h"

namespace weir {
namespace {

std::string Seconds(Duration length) {
  return std::to_string(std::chrono::floor<std::chrono::seconds>(length).count());
}

void TellLoaded(const std::string& path, const ReadSnapshot& snapshot, const Log& log) {
  const SnapshotReport& report = snapshot.loaded.report;
  log.Info("goes on with a snapshot", {{"file", path},
                                       {"keys", std::to_string(report.keys)},
                                       {"reservations", std::to_string(report.reservations)},
                                       {"age_seconds", Seconds(report.age)}});
  if (report.age < Duration(0)) {
    log.Warn(path +
             ": by the wall clock it was written in the future, so that clock was set back; it is "
             "taken as if no time had passed");
  }
  if (report.forgotten != 0) {
    log.Warn(path + ": " + std::to_string(report.forgotten) +
             " keys found no room and begin anew; raise memory: cap");
  }
  if (snapshot.seen_by_others) {
    log.Warn(path +
             ": may be read by others than its owner, who learn what keys are hashed with; "
             "chmod 600");
  }
}

void SetAside(const std::string& path, const Error& error, const Log& log) {
  log.Fail("memory: snapshot: " + error.message + "; begins with nothing");
  const Result<std::string> aside = SetSnapshotAside(path);
  if (aside) {
    log.Warn("memory: snapshot: " + path + " is kept as " + *aside);
  } else {
    log.Warn("memory: snapshot: " + aside.error().message);
  }
}

}  // namespace

Result<Engine> ResumeEngine(const Policy& policy, const EngineOptions& options, const Log& log) {
  const std::string path = SnapshotPath(policy);
  if (path.empty()) return Engine::Make(policy, options);
  if (const Result<void> room = CheckRoomForSnapshot(path); !room) {
    log.Fail("memory: snapshot: " + room.error().message + "; the state will be lost at the end");
  }
  Result<std::optional<ReadSnapshot>> snapshot = LoadSnapshot(path, policy, options);
  if (snapshot && *snapshot) {
    TellLoaded(path, **snapshot, log);
    return std::move((*snapshot)->loaded.engine);
  }
  if (!snapshot) SetAside(path, snapshot.error(), log);
  return Engine::Make(policy, options);
}

bool KeepState(Engine& engine, const Policy& policy, const Log& log) {
  const std::string path = SnapshotPath(policy);
  if (path.empty()) return true;
  const Result<SnapshotReport> report = SaveSnapshot(engine, path);
  if (!report) {
    log.Fail("memory: snapshot: " + report.error().message + "; the state is lost");
    return false;
  }
  log.Info("left a snapshot", {{"file", path},
                               {"keys", std::to_string(report->keys)},
                               {"reservations", std::to_string(report->reservations)}});
  return true;
}

}  // namespace weir
