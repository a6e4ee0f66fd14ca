#include "server/kept_state.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "server/snapshot_file.h"

namespace weir {
namespace {

std::string WholeSeconds(Duration length) {
  return std::to_string(std::chrono::floor<std::chrono::seconds>(length).count());
}

void TellLoaded(const std::string& path, const ReadSnapshot& snapshot, const Log& log) {
  const SnapshotReport& report = snapshot.loaded.report;
  log.Info("goes on with a snapshot", {{"file", path},
                                       {"keys", std::to_string(report.keys)},
                                       {"reservations", std::to_string(report.reservations)},
                                       {"age_seconds", WholeSeconds(report.age)}});
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

}  // namespace

KeptState::KeptState(const Policy& policy, const Log& log)
    : policy_(policy), log_(log), path_(SnapshotPath(policy)) {}

Result<Engine> KeptState::Resume(const EngineOptions& options) {
  if (path_.empty()) return Engine::Make(policy_, options);
  CheckRoom();
  Result<std::optional<ReadSnapshot>> snapshot = LoadSnapshot(path_, policy_, options);
  if (snapshot && *snapshot) {
    read_ = path_;
    TellLoaded(path_, **snapshot, log_);
    return std::move((*snapshot)->loaded.engine);
  }
  if (!snapshot) {
    is_unread_ = snapshot.error().code == ErrorCode::kInternal;
    log_.Fail("memory: snapshot: " + snapshot.error().message + "; begins with nothing" +
              (is_unread_ ? ", and the file stays where it is" : ""));
    if (!is_unread_) SetAside();
  }
  if (!is_unread_) read_ = path_;
  return Engine::Make(policy_, options);
}

void KeptState::CheckRoom() {
  if (const Result<void> room = CheckRoomForSnapshot(path_); !room) {
    log_.Fail("memory: snapshot: " + room.error().message + "; the state will be lost at the end");
  }
}

void KeptState::Apply(const Policy& policy) {
  std::string path = SnapshotPath(policy);
  if (path == path_) return;
  path_ = std::move(path);
  if (path_.empty()) return log_.Info("will leave no snapshot");
  is_unread_ = path_ != read_;  // If there is one.
  log_.Info("will leave a snapshot", {{"file", path_}});
  CheckRoom();
}

bool KeptState::Keep(Engine& engine) {
  if (path_.empty()) return true;
  // Unless somebody has taken it away meanwhile.
  std::error_code ignored;
  if (is_unread_ && exists(std::filesystem::symlink_status(path_, ignored))) SetAside();
  const Result<SnapshotReport> report = SaveSnapshot(engine, path_);
  if (!report) {
    log_.Fail("memory: snapshot: " + report.error().message + "; the state is lost");
    return false;
  }
  log_.Info("left a snapshot", {{"file", path_},
                                {"keys", std::to_string(report->keys)},
                                {"reservations", std::to_string(report->reservations)}});
  return true;
}

void KeptState::SetAside() {
  const Result<std::string> aside = SetSnapshotAside(path_);
  if (aside) {
    log_.Warn("memory: snapshot: " + path_ + " is kept as " + *aside);
  } else {
    log_.Warn("memory: snapshot: " + aside.error().message);
  }
}

}  // namespace weir
