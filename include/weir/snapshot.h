// The state of an engine as bytes, to go on with it in another process: see Engine::Save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <weir/result.h>
#include <weir/time.h>

namespace weir {

// Where bytes go, some thousand at a time; an error ends the writing.
using ByteSink = std::function<Result<void>(std::span<const std::byte>)>;
// Where they come from: fills as much as it likes of what it is given and says how much that is,
// 0 at the end.
using ByteSource = std::function<Result<std::size_t>(std::span<std::byte>)>;

// What was written, or taken up.
struct SnapshotReport {
  std::size_t keys = 0;          // That were not fresh.
  std::size_t reservations = 0;  // And leases.
  std::size_t forgotten = 0;     // Of the keys, those that gave way to others for want of memory.
  // How long ago it was written, by the wall clock; below zero if that was set back since.
  Duration age{0};
};

}  // namespace weir
