// An engine's state, to go on with it in another process.
#include <algorithm>

#include <weir/engine.h>

#include "engine/engine_state.h"
#include "engine/snapshot_head.h"
#include "policy/policy_compiler.h"
#include "store/memory/memory_store.h"

namespace weir {
namespace {

Error NotInMemory() {
  return {ErrorCode::kInvalidArgument,
          "store: its state is kept by its servers; only that of a store in memory can be saved"};
}

}  // namespace

Result<SnapshotReport> Engine::Save(const ByteSink& sink) {
  const std::scoped_lock lock(state_->change);
  const PolicyVersion& version = state_->versions.Current();
  if (version.is_shared()) return std::unexpected(NotInMemory());
  const Now now = state_->clock.Read();
  SnapshotWriter writer(sink);
  LimitWriter limits(writer, now.steady);
  PutStart({.hasher = state_->hasher, .written_at = now.wall}, writer);
  PutRules(version, state_->last_limits, writer, limits);
  const SnapshotReport report = version.memory->Save(writer, limits, now);
  if (Result<void> written = writer.Finish(); !written) return std::unexpected(written.error());
  return report;
}

Result<LoadedEngine> Engine::Load(const Policy& policy, const ByteSource& source,
                                  const EngineOptions& options) {
  if (HasSharedStore(policy.spec())) return std::unexpected(NotInMemory());
  if (Result<void> right = State::CheckOptions(options); !right)
    return std::unexpected(right.error());
  const Clock& clock = options.clock != nullptr ? *options.clock : SystemClock::Shared();
  const Now now = clock.Read();
  SnapshotReader reader(source);
  const Result<SnapshotStart> start = GetStart(reader);
  if (!start) return std::unexpected(start.error());
  // A wall clock that was set back tells nothing: as if no time had passed, nobody gets too much.
  const Duration age = now.wall - start->written_at;
  const Duration elapsed = std::clamp(age, Duration(0), Duration(std::chrono::hours(24 * 366 * 6)));
  LimitReader limits(reader, now.steady - elapsed);
  SnapshotHead head{.hasher = start->hasher};
  GetRules(reader, limits, head);
  if (reader.failed()) return std::unexpected(reader.Finish().error());
  Engine engine(std::make_unique<State>(
      policy, options, State::HomeInMemory(policy.spec(), options, &head.hasher), &head));
  SnapshotReport report =
      engine.state_->versions.Current().memory->Load(reader, limits, now, elapsed);
  if (Result<void> read = reader.Finish(); !read) return std::unexpected(read.error());
  report.age = age;
  return LoadedEngine{.engine = std::move(engine), .report = report};
}

}  // namespace weir
