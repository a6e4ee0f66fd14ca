// Limits in a snapshot, each written once and told by its number from then on.
//
// Where a limit stands there are any number of definitions that are needed for it, each with a 1
// before it, then a 0 and the number of the limit. Definitions are numbered in their order:
//
//   | kind 1 | algorithm 1 | queue 1 | overdraft 1 | strict 1 | align 1 | calendar 1 | week start 1
//   | | sub-windows 4 | count 8 | period 8 | burst 8 | lease 8 | longest wait 8 | zone, a text | |
//   generation 8 | furthest 8 | number of the predecessor + 1, or 0 4 | how long it counts 8 |
//
// Lengths are in nanoseconds; how long a predecessor counts is from when the snapshot was written.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/limit.h>

#include "store/memory/snapshot_stream.h"

namespace weir {

class LimitWriter {
 public:
  LimitWriter(SnapshotWriter& writer, SteadyTime now) : writer_(writer), now_(now) {}

  void Put(const Limit& limit);

 private:
  // Of a limit that is defined from then on.
  std::uint32_t NumberOf(const Limit& limit);

  SnapshotWriter& writer_;
  const SteadyTime now_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // By their definitions.
};

class LimitReader {
 public:
  // `written_at` is when the snapshot was, on the clock of this process.
  LimitReader(SnapshotReader& reader, SteadyTime written_at)
      : reader_(reader), written_at_(written_at) {}

  // If the reader has failed, some limit.
  Limit Get();

 private:
  Result<Limit> ReadDefinition();
  LimitSpec ReadSpec();

  SnapshotReader& reader_;
  const SteadyTime written_at_;
  std::vector<Limit> limits_;
};

}  // namespace weir
