#include "store/memory/limit_records.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/snapshot_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// What comes of limits that are written and read back, `elapsed` later.
std::vector<Limit> ReadBack(const std::vector<Limit>& limits, SteadyTime now, SteadyTime written_at,
                            std::size_t* size = nullptr) {
  Bytes bytes;
  const ByteSink sink = SinkInto(bytes);
  SnapshotWriter writer(sink);
  LimitWriter limit_writer(writer, now);
  for (const Limit& limit : limits) limit_writer.Put(limit);
  EXPECT_TRUE(writer.Finish());
  if (size != nullptr) *size = bytes.size();
  const ByteSource source = SourceOf(bytes);
  SnapshotReader reader(source);
  LimitReader limit_reader(reader, written_at);
  std::vector<Limit> read;
  for (std::size_t i = 0; i < limits.size(); ++i) read.push_back(limit_reader.Get());
  EXPECT_TRUE(reader.Finish());
  return read;
}

void ExpectSame(const Limit& read, const Limit& limit, Duration moved) {
  EXPECT_EQ(read.spec(), limit.spec());
  EXPECT_EQ(read.state_salt(), limit.state_salt());
  EXPECT_EQ(read.furthest(), limit.furthest());
  EXPECT_EQ(read.capacity(), limit.capacity());
  ASSERT_EQ(read.predecessor() == nullptr, limit.predecessor() == nullptr);
  if (limit.predecessor() == nullptr) return;
  EXPECT_EQ(read.predecessor_until(), limit.predecessor_until() + moved);
  ExpectSame(*read.predecessor(), *limit.predecessor(), moved);
}

TEST(LimitRecords, AreReadBackWithTheirPast) {
  ManualClock clock;
  std::vector<Limit> limits = {LimitOf("unlimited"), LimitOf("deny")};
  for (const AlgorithmCase& it : EveryAlgorithm()) {
    limits.push_back(it.limit);
    Limit last = it.limit;
    for (int count = 11; count < 25; ++count) {
      LimitSpec spec = it.limit.spec();
      spec.count = count;
      last = Limit::Make(spec)->Replacing(last, clock.Read());
      clock.Advance(Duration(seconds(1)));
      limits.push_back(last);
    }
  }
  limits.push_back(LimitOf("10/week", {.algorithm = Algorithm::kFixedWindow,
                                       .align = Align::kCalendar,
                                       .zone = "Europe/Berlin",
                                       .week_start = std::chrono::Sunday}));
  limits.push_back(LimitOf("10/h").SharingKeysWithAny());
  const SteadyTime now = clock.Read().steady;
  const SteadyTime written_at = now - hours(5);
  const std::vector<Limit> read = ReadBack(limits, now, written_at);
  for (std::size_t i = 0; i < limits.size(); ++i) ExpectSame(read[i], limits[i], -hours(5));
}

TEST(LimitRecords, AreWrittenOnce) {
  const SteadyTime now = ManualClock().Read().steady;
  std::size_t one = 0;
  std::size_t many = 0;
  ReadBack({LimitOf("10/s")}, now, now, &one);
  ReadBack(std::vector<Limit>(101, LimitOf("10/s")), now, now, &many);
  EXPECT_EQ(many, one + 100 * 5);
}

// --- What cannot be ---

TEST(LimitWithPast, RefusesAPredecessorOfAnotherKind) {
  const auto past = [](std::string_view text, const LimitSpec& spec = {}) {
    return Limit::Past{.generation = 1,
                       .predecessor = std::make_shared<const Limit>(LimitOf(text, spec))};
  };
  const Limit log = LimitOf("10/s", {.algorithm = Algorithm::kSlidingLog});
  EXPECT_TRUE(log.WithPast(past("20/s", {.algorithm = Algorithm::kSlidingLog})));
  EXPECT_FALSE(log.WithPast(past("10/2s", {.algorithm = Algorithm::kSlidingLog})));
  EXPECT_FALSE(log.WithPast(past("10/s", {.algorithm = Algorithm::kFixedWindow})));
  EXPECT_FALSE(log.WithPast(past("unlimited")));
  const Limit places = LimitOf("10 concurrent lease 10s");
  EXPECT_FALSE(places.WithPast(past("9 concurrent lease 10s")));
  EXPECT_FALSE(LimitOf("unlimited").WithPast(past("unlimited")));
}

TEST(LimitWithPast, RefusesAChainThatNoChangesLeadTo) {
  Limit limit = LimitOf("10/s", {.algorithm = Algorithm::kSlidingLog});
  const auto replaced = [&] {
    return limit.WithPast({.generation = limit.generation() + 1,
                           .predecessor = std::make_shared<const Limit>(limit)});
  };
  for (int i = 0; i < 8; ++i) limit = replaced().value();
  EXPECT_FALSE(replaced());
}

// The store locks the keys of a limit and of its predecessor together: with equal keys it would
// wait for itself.
TEST(LimitWithPast, RefusesAPredecessorOfAnyGenerationButTheOneBefore) {
  const Limit log = LimitOf("10/s", {.algorithm = Algorithm::kSlidingLog});
  const auto before = std::make_shared<const Limit>(log.WithPast({.generation = 7}).value());
  EXPECT_TRUE(log.WithPast({.generation = 8, .predecessor = before}));
  for (const std::uint64_t generation : {0U, 6U, 7U, 9U}) {
    EXPECT_FALSE(log.WithPast({.generation = generation, .predecessor = before}));
  }
}

TEST(LimitWithPast, RefusesABucketThatIsFurtherAheadThanAny) {
  const Limit bucket = LimitOf("10/s");
  EXPECT_TRUE(bucket.WithPast({.furthest = bucket.furthest()}));
  EXPECT_FALSE(bucket.WithPast({.furthest = bucket.furthest() - 1}));
  EXPECT_FALSE(bucket.WithPast({.furthest = std::numeric_limits<std::int64_t>::max()}));
}

}  // namespace
}  // namespace weir
