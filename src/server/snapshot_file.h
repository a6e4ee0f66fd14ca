// The file in which a service leaves its state for the next one.
//
// It is replaced as a whole, by way of FILE.new beside it, so that there is always the old one or
// the new one. It holds the secret that keys are hashed with: it is for its owner alone, and one
// that somebody else could have written is not believed. Root takes up and leaves that of whoever
// owns the folder.
#pragma once

#include <optional>
#include <string>

#include <weir/engine.h>
#include <weir/policy.h>

namespace weir {

// Where the policy wants it, beside the policy file unless it says more. Empty if nowhere.
std::string SnapshotPath(const Policy& policy);

struct ReadSnapshot {
  LoadedEngine loaded;
  bool seen_by_others = false;  // Somebody else may read the file.
};
// None if there is no such file. The error says what is wrong: kInternal if it could not be opened
// or read, which says nothing about what is in it, and kInvalidArgument if it is not to be used.
Result<std::optional<ReadSnapshot>> LoadSnapshot(const std::string& path, const Policy& policy,
                                                 const EngineOptions& options);

// An error leaves what was there as it was.
Result<SnapshotReport> SaveSnapshot(Engine& engine, const std::string& path);

// Out of the way of the next, as FILE.bad, or FILE.bad.2 to FILE.bad.5 if there are some already.
// An error if all are: then it stays, as does a folder, which is never a snapshot.
Result<std::string> SetSnapshotAside(const std::string& path);

// Whether one could be left there. Leaves nothing.
Result<void> CheckRoomForSnapshot(const std::string& path);

// Whether a service under this policy could take up what is there, and leave its own. Changes
// nothing.
Result<void> CheckSnapshot(const Policy& policy);

}  // namespace weir
