// A store that goes on with another's snapshot is as good as that one.
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/memory/snapshot_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

bool Same(const Decision& a, const Decision& b) {
  return a.allowed == b.allowed && a.reason == b.reason && a.remaining == b.remaining &&
         a.retry_after == b.retry_after && a.reset_after == b.reset_after && a.delay == b.delay;
}

std::vector<AlgorithmCase> AllLimits() {
  std::vector<AlgorithmCase> cases = EveryAlgorithm();
  const Limit daily =
      LimitOf("10/day", {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendar});
  cases.push_back({"CalendarDay", daily});
  for (AlgorithmCase& other : EveryAlgorithm({.overdraft = true})) {
    cases.push_back({"Overdraft" + other.name, other.limit});
  }
  // Whose windows and intervals are no whole number of nanoseconds.
  cases.push_back({"OddBucket", LimitOf("7/3s")});
  LimitSpec strict{.algorithm = Algorithm::kSlidingWindow, .strict = true, .sub_windows = 7};
  cases.push_back({"OddStrict", LimitOf("10/10s", strict)});
  return cases;
}

class Snapshot : public testing::TestWithParam<AlgorithmCase> {
 protected:
  const Limit& limit() const { return GetParam().limit; }
};

TEST_P(Snapshot, KeepsAnExhaustedKeyExhausted) {
  StoreUnderTest before;
  before.Exhaust("ann", limit());
  StoreGoingOn after(before, Duration(0));
  ASSERT_TRUE(after.read) << after.read.error().message;
  EXPECT_EQ(after.report.keys, 1);
  EXPECT_TRUE(Same(after.under_test.Check("ann", limit()), before.Check("ann", limit())));
  EXPECT_FALSE(after.under_test.Check("ann", limit()).allowed);
  EXPECT_TRUE(after.under_test.Check("bob", limit()).allowed);
}

TEST_P(Snapshot, CountsTheTimeThatHasPassed) {
  for (const Duration elapsed : {Duration(milliseconds(900)), Duration(seconds(5)),
                                 Duration(seconds(12)), Duration(hours(25))}) {
    StoreUnderTest before;
    before.clock.Advance(milliseconds(2'345));
    before.Exhaust("ann", limit());
    StoreGoingOn after(before, elapsed);
    before.clock.Advance(elapsed);
    for (int i = 0; i < 30; ++i) {
      EXPECT_TRUE(Same(after.under_test.Check("ann", limit()), before.Check("ann", limit())));
      after.under_test.clock.Advance(milliseconds(700));
      before.clock.Advance(milliseconds(700));
    }
  }
}

TEST_P(Snapshot, LeavesOutWhatIsFresh) {
  StoreUnderTest before;
  before.Exhaust("ann", limit());
  before.clock.Advance(hours(24 * 800));
  EXPECT_EQ(StoreGoingOn(before, Duration(0)).report.keys, 0);

  StoreUnderTest other;
  other.Exhaust("ann", limit());
  EXPECT_EQ(StoreGoingOn(other, hours(24 * 800)).report.keys, 0);
}

TEST_P(Snapshot, SettlesWhatWasReservedBefore) {
  for (const std::int64_t cost : {0, 1, 4}) {
    StoreUnderTest before;
    const Charge charge = before.ChargeFor("ann", limit(), 3);
    const Decision reserved = before.Ask({charge}, Action::kReserve);
    ASSERT_TRUE(reserved.allowed);
    StoreGoingOn after(before, seconds(1));
    EXPECT_EQ(after.report.reservations, 1);
    before.clock.Advance(seconds(1));
    const auto expected = before.Commit(reserved.reservation, cost, {&charge, 1});
    const auto committed = after.under_test.Commit(reserved.reservation, cost, {&charge, 1});
    ASSERT_TRUE(committed && expected);
    EXPECT_TRUE(Same(*committed, *expected));
    EXPECT_FALSE(after.under_test.Commit(reserved.reservation, cost, {&charge, 1}));
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Snapshot, testing::ValuesIn(AllLimits()), NameOfAlgorithm());

// The same random traffic on a store that is saved and loaded again and again, and on one that
// never is: every decision is the same.
class Twins {
 public:
  void Run() {
    const auto steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      switch (*rc::gen::inRange(0, 10)) {
        case 0:
          GoOn();
          break;
        case 1:
          Reserve();
          break;
        case 2:
          Settle();
          break;
        default:
          Do();
          break;
      }
      Advance(SomeTime());
    }
  }

 private:
  static Duration SomeTime() {
    const Duration most = *rc::gen::element<Duration>(Duration(1), milliseconds(10), seconds(2),
                                                      seconds(15), hours(30));
    return Duration(*rc::gen::inRange<std::int64_t>(0, most.count() + 1));
  }
  StoreUnderTest& other() { return going_on_ ? going_on_->under_test : copy_; }

  void Advance(Duration step) {
    one_.clock.Advance(step);
    other().clock.Advance(step);
  }
  void GoOn() {
    const Duration elapsed = SomeTime();
    auto next = std::make_unique<StoreGoingOn>(other(), elapsed);
    RC_ASSERT(next->read.has_value());
    going_on_ = std::move(next);
    one_.clock.Advance(elapsed);
  }
  const AlgorithmCase& SomeLimit() const {
    return limits_[*rc::gen::inRange<std::size_t>(0, limits_.size())];
  }

  void Do() {
    const Limit& limit = SomeLimit().limit;
    const std::string key = *rc::gen::element<std::string>("ann", "bob");
    const auto verb = *rc::gen::weightedElement<Verb>({{8, Verb::kCheck},
                                                       {1, Verb::kPeek},
                                                       {1, Verb::kRefund},
                                                       {1, Verb::kPenalize},
                                                       {1, Verb::kReset}});
    const auto cost = *rc::gen::inRange<std::int64_t>(0, 12);
    const Decision expected = one_.Do(verb, key, limit, cost);
    RC_ASSERT(Same(other().Do(verb, key, limit, cost), expected));
  }
  void Reserve() {
    const Limit& limit = SomeLimit().limit;
    const auto cost = *rc::gen::inRange<std::int64_t>(1, 5);
    const Decision expected = one_.Ask({one_.ChargeFor("ann", limit, cost)}, Action::kReserve);
    const Decision told = other().Ask({other().ChargeFor("ann", limit, cost)}, Action::kReserve);
    RC_ASSERT(Same(told, expected));
    if (told.allowed) open_.emplace_back(expected.reservation, told.reservation, &limit);
  }
  void Settle() {
    if (open_.empty()) return;
    const auto [mine, others, limit] = open_.back();
    open_.pop_back();
    const auto cost = *rc::gen::inRange<std::int64_t>(0, 6);
    const Charge in_force = one_.ChargeFor("ann", *limit);
    const auto expected = one_.Commit(mine, cost, {&in_force, 1});
    const auto told = other().Commit(others, cost, {&in_force, 1});
    RC_ASSERT(told.has_value() == expected.has_value());
    if (told) RC_ASSERT(Same(*told, *expected));
  }

  const std::vector<AlgorithmCase> limits_ = AllLimits();
  StoreUnderTest one_;
  StoreUnderTest copy_{{.hasher = one_.store.hasher()}};
  std::unique_ptr<StoreGoingOn> going_on_;
  std::vector<std::tuple<ReservationId, ReservationId, const Limit*>> open_;
};

RC_GTEST_PROP(SnapshotProperty, DecidesAsAStoreThatWasNeverSaved, ()) { Twins().Run(); }

TEST(SnapshotOfMany, IsTakenUpWhole) {
  StoreUnderTest before;
  const Limit bucket = LimitOf("1/h");
  const Limit window = LimitOf("1/h", {.algorithm = Algorithm::kSlidingWindow});
  constexpr int kKeys = 60'000;
  for (int i = 0; i < kKeys; ++i) {
    before.Check(std::to_string(i), bucket);
    before.Check(std::to_string(i), window);
  }
  StoreGoingOn after(before, seconds(1));
  ASSERT_TRUE(after.read);
  EXPECT_EQ(after.report.keys, 2 * kKeys);
  EXPECT_EQ(after.report.forgotten, 0);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_FALSE(after.under_test.Check(std::to_string(i), bucket).allowed);
    ASSERT_FALSE(after.under_test.Check(std::to_string(i), window).allowed);
  }
}

TEST(SnapshotOfMany, TakenWhileATableGrowsIsWhole) {
  const Limit limit = LimitOf("1/h");
  // Some of these are in the midst of it.
  for (int keys = 700; keys < 1'500; keys += 13) {
    StoreUnderTest before;
    for (int i = 0; i < keys; ++i) before.Check(std::to_string(i), limit);
    StoreGoingOn after(before, seconds(0));
    ASSERT_EQ(after.report.keys, static_cast<std::size_t>(keys));
    for (int i = 0; i < keys; ++i) {
      ASSERT_FALSE(after.under_test.Check(std::to_string(i), limit).allowed);
    }
  }
}

// How many of the keys that were being denied still are, in a store with little room. The store
// says of each of the others that it gave it up.
int DeniedAfter(const Limit& limit, int keys, int denied_of) {
  // With a random seed, 12 of 1,000 stores lose a denied log: the eight slots that it may take are
  // all occupied by denied keys.
  StoreUnderTest before({.hash_seed = 7});
  const auto is_denied = [&](int key) { return key % denied_of == 0; };
  for (int i = 0; i < keys; ++i) {
    before.Check(std::to_string(i), limit);
    if (is_denied(i)) before.Check(std::to_string(i), limit);
  }
  StoreGoingOn after(before, seconds(0), {.cap_bytes = kMinCapBytes});
  EXPECT_TRUE(after.read);
  EXPECT_GT(after.report.forgotten, 0);
  EXPECT_LE(after.under_test.store.Stats().bytes, kMinCapBytes);
  int kept = 0;
  for (int i = 0; i < keys; ++i) {
    const bool allowed = after.under_test.Do(Verb::kPeek, std::to_string(i), limit).allowed;
    if (is_denied(i) && !allowed) ++kept;
  }
  const auto given_up = static_cast<int>(after.under_test.store.Stats().evicted_denied);
  EXPECT_EQ(kept + given_up, keys / denied_of);
  return kept;
}

TEST(SnapshotOfMany, KeepsThoseThatAreDeniedWhereThereIsLessRoom) {
  const Limit bucket = LimitOf("1/h");
  const Limit log = LimitOf("1/h", {.algorithm = Algorithm::kSlidingLog});
  EXPECT_EQ(DeniedAfter(bucket, 160'000, 40), 4'000);
  // There is room for 8,192 logs.
  EXPECT_EQ(DeniedAfter(log, 100'000, 40), 2'500);
  // Nearly as many as there is room for.
  EXPECT_GT(DeniedAfter(bucket, 160'000, 2), 70'000);
}

TEST(SnapshotOfReservations, FindsNoRoomForMoreThanThereMayBe) {
  StoreUnderTest before;
  const Limit limit = LimitOf("8 concurrent lease 1h");
  std::vector<ReservationId> leases;
  for (int i = 0; i < 8; ++i)
    leases.push_back(before.Ask({before.ChargeFor("a", limit)}).reservation);
  ASSERT_TRUE(before.Cancel(leases[2]));
  StoreGoingOn after(before, seconds(1), {.max_reservations = 5});
  ASSERT_TRUE(after.read);
  EXPECT_EQ(after.report.reservations, 4);
  EXPECT_EQ(after.under_test.Remaining("a", limit), 1);  // All count, whether they have a record.
  EXPECT_TRUE(after.under_test.Cancel(leases[0]));
  EXPECT_TRUE(after.under_test.Cancel(leases[4]));
  EXPECT_FALSE(after.under_test.Cancel(leases[2]));
  EXPECT_FALSE(after.under_test.Cancel(leases[7]));
  EXPECT_EQ(after.under_test.Remaining("a", limit), 3);
  // What is free is used again, under other ids.
  const ReservationId next = after.under_test.Ask({before.ChargeFor("a", limit)}).reservation;
  EXPECT_NE(next, ReservationId::kNone);
  EXPECT_EQ(std::ranges::count(leases, next), 0);
}

// --- Bytes with a good checksum that no store has written ---

// What a store says to them; `put` writes them.
std::string WhyRefused(const std::function<void(SnapshotWriter&, LimitWriter&)>& put) {
  StoreUnderTest under_test;
  const Now now = under_test.clock.Read();
  Bytes bytes;
  const ByteSink sink = SinkInto(bytes);
  SnapshotWriter writer(sink);
  LimitWriter limit_writer(writer, now.steady);
  writer.Put(ToTicks(hours(24 * 366)).count());
  writer.Put((now.wall - hours(24 * 366)).time_since_epoch().count());
  put(writer, limit_writer);
  EXPECT_TRUE(writer.Finish());
  const ByteSource source = SourceOf(bytes);
  SnapshotReader reader(source);
  LimitReader limits(reader, now.steady);
  under_test.store.Load(reader, limits, now, Duration(0));
  const Result<void> read = reader.Finish();
  return read ? "" : read.error().message;
}

// A number that has not passed yet, as a slot's word.
const std::uint64_t kLive = MakeWord(ToTicks(hours(24 * 366 + 1)));

// The words of an entry of a table, 0 to 4, and nothing in the others.
std::string WhyRefusedEntries(int table, const std::vector<std::vector<std::uint64_t>>& entries) {
  return WhyRefused([&](SnapshotWriter& writer, LimitWriter&) {
    writer.Put(std::uint32_t{0});
    for (int i = 0; i < 5; ++i) {
      writer.Put(std::uint64_t{i == table ? entries.size() : 0});
      if (i != table) continue;
      for (const auto& words : entries) {
        for (const std::uint64_t word : words) writer.Put(word);
      }
    }
  });
}

TEST(SnapshotFromNowhere, IsRefusedForKeysThatCannotBe) {
  EXPECT_EQ(WhyRefusedEntries(0, {{1, kLive}, {2, kLive | kDeniedBit}}), "");
  EXPECT_EQ(WhyRefusedEntries(0, {{0, kLive}}), "a key that cannot be");
  EXPECT_EQ(WhyRefusedEntries(0, {{1, kLive | kLockedBit}}), "a key that cannot be");
  EXPECT_EQ(WhyRefusedEntries(0, {{1, kLive}, {1, kLive}}), "a key comes twice");
  EXPECT_EQ(WhyRefusedEntries(1, {{1, kLive, 3, 4}, {1, kLive, 3, 4}}), "a key comes twice");
}

TEST(SnapshotFromNowhere, IsRefusedForWindowsThatCannotBe) {
  const auto too_many = static_cast<std::uint64_t>(2 * kMaxCount + 1);
  const std::uint64_t negative = ~std::uint64_t{0};
  EXPECT_EQ(WhyRefusedEntries(1, {{1, kLive, 3, 4}}), "");
  EXPECT_EQ(WhyRefusedEntries(1, {{1, kLive, too_many, 4}}), "a window that cannot be");
  EXPECT_EQ(WhyRefusedEntries(1, {{1, kLive, negative, 4}}), "a window that cannot be");
  EXPECT_EQ(WhyRefusedEntries(1, {{1, kLive, 3, negative << 63}}), "a window that cannot be");
  std::vector<std::uint64_t> strict(16, 1);
  strict[1] = kLive;
  EXPECT_EQ(WhyRefusedEntries(3, {strict}), "");
  strict[15] = too_many;
  EXPECT_EQ(WhyRefusedEntries(3, {strict}), "a window that cannot be");
}

TEST(SnapshotFromNowhere, IsRefusedForLogsThatCannotBe) {
  struct Logged {
    std::int64_t at;
    std::int64_t cost;
  };
  const auto why = [](const std::vector<Logged>& events, std::uint32_t count) {
    return WhyRefused([&](SnapshotWriter& writer, LimitWriter&) {
      writer.Put(std::uint32_t{0});
      writer.Put(std::uint64_t{0});
      writer.Put(std::uint64_t{0});
      writer.Put(std::uint64_t{1});
      writer.Put(std::uint64_t{1});
      writer.Put(kLive);
      writer.Put(count);
      for (const Logged& event : events) {
        writer.Put(event.at);
        writer.Put(event.cost);
      }
      writer.Put(std::uint64_t{0});
      writer.Put(std::uint64_t{0});
    });
  };
  const std::int64_t now = ToTicks(hours(24 * 366)).count();
  EXPECT_EQ(why({{now, 1}, {now, 2 * kMaxLogEntries - 1}}, 2), "");
  EXPECT_EQ(why({{now, 1}, {now, 2 * kMaxLogEntries}}, 2), "a log is out of range");
  EXPECT_EQ(why({{now, 2 * kMaxLogEntries}, {now, 1}}, 2), "a log that cannot be");
  EXPECT_EQ(why({{now, 0}}, 1), "a log is out of range");
  EXPECT_EQ(why({{now, -1}}, 1), "a log is out of range");
  EXPECT_EQ(why({{now, 1}, {now - 1, 1}}, 2), "a log that cannot be");
  EXPECT_EQ(why({}, 2 * kMaxLogEntries + 1), "a log is out of range");
}

TEST(SnapshotFromNowhere, IsRefusedForReservationsThatCannotBe) {
  const auto why = [](const Limit& limit, std::int64_t times, std::int64_t cost) {
    return WhyRefused([&](SnapshotWriter& writer, LimitWriter& limits) {
      writer.Put(std::uint32_t{1});
      writer.Put(std::uint64_t{7});
      writer.Put(ToTicks(hours(24 * 366 + 1)).count());
      writer.Put(std::uint32_t{1});
      writer.Put(std::uint64_t{1});
      writer.Put(std::uint64_t{1});
      limits.Put(limit);
      writer.Put(std::uint8_t{0});
      writer.Put(std::uint8_t{0});
      writer.Put(times);
      writer.Put(cost);
      writer.Put(std::int64_t{0});
      for (int i = 0; i < 5; ++i) writer.Put(std::uint64_t{0});
    });
  };
  const Limit limit = LimitOf("10/s");
  EXPECT_EQ(why(limit, 1, 5), "");
  EXPECT_EQ(why(limit, 0, 5), "a reservation is out of range");
  EXPECT_EQ(why(limit, 65, 5), "a reservation is out of range");
  EXPECT_EQ(why(limit, 1, -1), "a reservation is out of range");
  EXPECT_EQ(why(LimitOf("deny"), 1, 5), "a reservation under no limit");
}

TEST(SnapshotOfWindows, AreAlignedAsTheyWereWhateverTheWallClockDidMeanwhile) {
  const Limit limit = LimitOf("1/10s", {.algorithm = Algorithm::kFixedWindow});
  StoreUnderTest before;
  before.clock.Advance(seconds(3));
  before.clock.SetWall(before.clock.Read().wall + milliseconds(1'500));
  ASSERT_TRUE(before.Check("ann", limit).allowed);
  StoreGoingOn after(before, seconds(1));
  const Decision told = after.under_test.Check("ann", limit);
  EXPECT_EQ(told.retry_after, Duration(seconds(6)));
  after.under_test.clock.Advance(seconds(6));
  EXPECT_TRUE(after.under_test.Check("ann", limit).allowed);
  EXPECT_EQ(after.under_test.Check("ann", limit).retry_after, Duration(seconds(10)));
}

}  // namespace
}  // namespace weir
