// What the tests of snapshots share: bytes in memory in place of a file, and a store that goes on
// with those of another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "store/memory/limit_records.h"
#include "store/memory/snapshot_stream.h"
#include "store/memory/store_under_test.h"

namespace weir {

using Bytes = std::vector<std::byte>;

inline ByteSink SinkInto(Bytes& bytes) {
  return [&bytes](std::span<const std::byte> some) -> Result<void> {
    bytes.insert(bytes.end(), some.begin(), some.end());
    return {};
  };
}

// At most `piece` bytes at a time.
inline ByteSource SourceOf(std::span<const std::byte> bytes, std::size_t piece = 1 << 20) {
  return [bytes, piece](std::span<std::byte> into) mutable -> Result<std::size_t> {
    const std::size_t some = std::min({into.size(), bytes.size(), piece});
    std::ranges::copy(bytes.first(some), into.begin());
    bytes = bytes.subspan(some);
    return some;
  };
}

inline Bytes Saved(StoreUnderTest& under_test) {
  Bytes bytes;
  const ByteSink sink = SinkInto(bytes);
  SnapshotWriter writer(sink);
  const Now now = under_test.clock.Read();
  LimitWriter limits(writer, now.steady);
  under_test.store.Save(writer, limits, now);
  EXPECT_TRUE(writer.Finish());
  return bytes;
}

// A store of another process, `elapsed` later on the wall, its steady clock as new.
class StoreGoingOn {
 public:
  StoreGoingOn(StoreUnderTest& before, Duration elapsed, MemoryStoreOptions options = {})
      : under_test(WithHasher(options, before), before.clock.Read().wall + elapsed) {
    const Bytes bytes = Saved(before);
    const ByteSource source = SourceOf(bytes);
    SnapshotReader reader(source);
    const Now now = under_test.clock.Read();
    LimitReader limits(reader, now.steady - elapsed);
    report = under_test.store.Load(reader, limits, now, elapsed);
    read = reader.Finish();
  }

  StoreUnderTest under_test;
  SnapshotReport report;
  Result<void> read;

 private:
  static MemoryStoreOptions WithHasher(MemoryStoreOptions options, const StoreUnderTest& before) {
    options.hasher = before.store.hasher();
    return options;
  }
};

}  // namespace weir
