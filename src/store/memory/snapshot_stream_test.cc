#include "store/memory/snapshot_stream.h"

#include <string>

#include <gtest/gtest.h>

#include "store/memory/snapshot_under_test.h"

namespace weir {
namespace {

Bytes Written(int numbers) {
  Bytes bytes;
  const ByteSink sink = SinkInto(bytes);
  SnapshotWriter writer(sink);
  for (int i = 0; i < numbers; ++i) {
    writer.Put(static_cast<std::uint8_t>(i));
    writer.Put(static_cast<std::int64_t>(-i));
    writer.PutText(std::string(static_cast<std::size_t>(i % 50), 'x'));
  }
  EXPECT_TRUE(writer.Finish());
  return bytes;
}

Result<void> ReadBack(std::span<const std::byte> bytes, int numbers, std::size_t piece) {
  const ByteSource source = SourceOf(bytes, piece);
  SnapshotReader reader(source);
  for (int i = 0; i < numbers; ++i) {
    EXPECT_EQ(reader.Get<std::uint8_t>(), static_cast<std::uint8_t>(i));
    EXPECT_EQ(reader.Get<std::int64_t>(), -i);
    EXPECT_EQ(reader.GetText(50).size(), static_cast<std::size_t>(i % 50));
  }
  return reader.Finish();
}

TEST(SnapshotStream, IsReadBackAsItWasWrittenInWhateverPieces) {
  const Bytes small = Written(20);
  for (std::size_t piece = 1; piece < 40; ++piece) EXPECT_TRUE(ReadBack(small, 20, piece));
  // Many times what is kept in memory.
  const Bytes large = Written(50'000);
  EXPECT_GT(large.size(), std::size_t{1} << 20);
  for (const std::size_t piece : {1'000U, 262'143U, 10'000'000U}) {
    EXPECT_TRUE(ReadBack(large, 50'000, piece));
  }
}

TEST(SnapshotStream, IsLittleEndian) {
  Bytes bytes;
  const ByteSink sink = SinkInto(bytes);
  SnapshotWriter writer(sink);
  writer.Put(std::uint32_t{0x01020304});
  ASSERT_TRUE(writer.Finish());
  ASSERT_EQ(bytes.size(), 4 + 8);
  EXPECT_EQ(bytes[0], std::byte{4});
  EXPECT_EQ(bytes[3], std::byte{1});
}

TEST(SnapshotReader, KeepsTheFirstErrorAndReadsZerosFromThenOn) {
  const Bytes bytes = Written(20);
  const ByteSource source = SourceOf(bytes);
  SnapshotReader reader(source);
  reader.Get<std::uint8_t>();
  EXPECT_FALSE(reader.failed());
  EXPECT_EQ(reader.GetWithin<std::uint64_t>(7, 9, "this"), 7);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.Get<std::uint64_t>(), 0);
  EXPECT_EQ(reader.GetText(100), "");
  reader.Refuse("another");
  EXPECT_EQ(reader.Finish().error().message, "this is out of range");
}

TEST(SnapshotReader, TakesNoMemoryForATextThatIsTooLong) {
  Bytes bytes;
  const ByteSink sink = SinkInto(bytes);
  SnapshotWriter writer(sink);
  writer.Put(~std::uint32_t{0});
  ASSERT_TRUE(writer.Finish());
  const ByteSource source = SourceOf(bytes);
  SnapshotReader reader(source);
  EXPECT_EQ(reader.GetText(1'000), "");
  EXPECT_EQ(reader.Finish().error().message, "a text of 4294967295 bytes is too long");
}

}  // namespace
}  // namespace weir
