// What a snapshot of an engine has to say before the state itself: who wrote it when, what keys
// were hashed with, and what every rule counted by.
#pragma once

#include <string>
#include <unordered_map>

#include <weir/clock.h>

#include "base/hash.h"
#include "engine/policy_version.h"
#include "store/memory/limit_records.h"
#include "store/memory/snapshot_stream.h"

namespace weir {

struct SnapshotHead {
  KeyHasher hasher;
  LimitsBefore rules{};
  // Also of rules that are switched off, or were removed.
  std::unordered_map<std::string, Limit> last_limits{};
};

// The part before the limits.
struct SnapshotStart {
  KeyHasher hasher;
  WallTime written_at;
};

void PutStart(const SnapshotStart& start, SnapshotWriter& writer);
// An error if it is no snapshot, or one of another version.
Result<SnapshotStart> GetStart(SnapshotReader& reader);

void PutRules(const PolicyVersion& version, const LastLimits& last_limits, SnapshotWriter& writer,
              LimitWriter& limits);
void GetRules(SnapshotReader& reader, LimitReader& limits, SnapshotHead& head);

}  // namespace weir
