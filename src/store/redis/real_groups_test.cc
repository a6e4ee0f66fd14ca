// Groups whose keys live on several real servers, or in several slots of a cluster.
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <weir/limit.h>

#include "store/redis/servers_under_test.h"
#include "store/redis/shared_limit_under_test.h"

namespace weir::redis {
namespace {

using std::chrono::milliseconds;

// One group over several keys.
struct Several {
  Several(StoreOnThread& store, const std::vector<std::string>& names, const Limit& limit,
          Verb verb = Verb::kCheck)
      : keys(names), charges(names.size()), decisions(names.size()), receipts(names.size()) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      charges[i].rule = "r";
      charges[i].key = keys[i];
      charges[i].hash = store.Hash(keys[i]);
      charges[i].limit = &limit;
      charges[i].verb = verb;
    }
    group.charges = charges;
    group.decisions = decisions;
    group.receipts = receipts;
  }
  Several(const Several&) = delete;
  Several& operator=(const Several&) = delete;

  bool Ask(StoreOnThread& store) {
    store.Ask({&group, 1});
    EXPECT_FALSE(group.error) << group.error->message;
    return !group.error && group.decision.allowed;
  }

  const std::vector<std::string> keys;
  std::vector<Charge> charges;
  std::vector<Decision> decisions;
  std::vector<Receipt> receipts;
  Group group;
};

bool ChargeOne(StoreOnThread& store, const std::string& key, const Limit& limit) {
  return Several(store, {key}, limit).Ask(store);
}

// What is left of a key.
std::int64_t Left(StoreOnThread& store, const std::string& key, const Limit& limit) {
  Several peek(store, {key}, limit, Verb::kPeek);
  peek.Ask(store);
  return peek.group.decision.remaining;
}

// Of each of many keys 6 are reserved; so many that every server has some, whatever its port.
class ReservedKeys {
 public:
  ReservedKeys(StoreOnThread& store, const Limit& limit, const std::string& prefix)
      : limit_(limit) {
    for (int i = 0; i < 60; ++i) keys_.push_back(prefix + std::to_string(i));
    Several group(store, keys_, limit);
    for (Charge& charge : group.charges) charge.cost = 6;
    group.group.action = Action::kReserve;
    EXPECT_TRUE(group.Ask(store));
    id_ = group.group.reservation;
  }

  // Commits 2, or cancels.
  std::optional<Error> Settle(StoreOnThread& store, Action action) const {
    const LimitInForce in_force{.rule = store.Hash("r"), .name = "r", .limit = &limit_};
    Group group{.action = action, .in_force = {&in_force, 1}, .reservation = id_, .cost = 2};
    store.Ask({&group, 1});
    return group.error;
  }

  // Whether all servers do.
  bool Answer(StoreOnThread& store) const {
    Several peek(store, keys_, limit_, Verb::kPeek);
    store.Ask({&peek.group, 1});
    return !peek.group.error;
  }

  void ExpectLeft(StoreOnThread& store, std::int64_t units) const {
    Several peek(store, keys_, limit_, Verb::kPeek);
    peek.Ask(store);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      EXPECT_EQ(peek.decisions[i].remaining, units) << keys_[i];
    }
  }

 private:
  const Limit& limit_;
  std::vector<std::string> keys_;
  ReservationId id_ = ReservationId::kNone;
};

const std::vector<std::string> kKeys = {"a", "b", "c", "d", "e", "f", "g", "h"};

// Three servers that know nothing of each other.
class RealShards : public testing::Test {
 protected:
  RealShards() {
    for (const Server& server : servers_)
      settings_.sites.push_back({.endpoint = server.endpoint()});
    settings_.timeout = std::chrono::seconds(5);  // Nobody here waits for it in vain.
  }

  Server servers_[3];
  Settings settings_;
};

TEST_F(RealShards, ChargeAllOrNothing) {
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("10/day");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Several(store, kKeys, limit).Ask(store)) << i;
  EXPECT_FALSE(Several(store, kKeys, limit).Ask(store));
  // One key is exhausted, the others are not, and stay as they are.
  for (int i = 0; i < 10; ++i) ChargeOne(store, "lone", limit);
  std::vector<std::string> names = {"x1", "x2", "x3", "x4", "x5", "lone"};
  for (int i = 0; i < 3; ++i) {
    Several group(store, names, limit);
    EXPECT_FALSE(group.Ask(store));
    EXPECT_FALSE(group.decisions.back().allowed);
    EXPECT_GT(group.group.decision.retry_after, Duration(0));
  }
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(Left(store, "x" + std::to_string(i), limit), 10) << i;
}

TEST_F(RealShards, GiveBackUnderEveryAlgorithm) {
  StoreOnThread store(settings_);
  int number = 0;
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucket, Algorithm::kFixedWindow,
        Algorithm::kSlidingWindow, Algorithm::kSlidingLog, Algorithm::kConcurrency}) {
    LimitSpec spec{.algorithm = algorithm, .count = 10};
    if (algorithm != Algorithm::kConcurrency) spec.period = std::chrono::hours(24);
    const Result<Limit> made = Limit::Make(spec);
    ASSERT_TRUE(made) << made.error().message;
    const Limit limit = *made->ForSharedStore();
    const std::string tag = std::to_string(++number);
    for (int i = 0; i < 10; ++i) ChargeOne(store, "lone" + tag, limit);
    Several group(store, {"x" + tag, "y" + tag, "z" + tag, "w" + tag, "lone" + tag}, limit);
    EXPECT_FALSE(group.Ask(store)) << number;
    for (const char* key : {"x", "y", "z", "w"}) {
      EXPECT_EQ(Left(store, key + tag, limit), 10) << number << key;
    }
  }
}

// Two are denied, one later than the other, because the servers that deny them take their time.
TEST_F(RealShards, GiveBackNothingThatDrainedBecauseAnotherWasDeniedBefore) {
  StoreOnThread store(settings_);
  StoreOnThread first(settings_);
  StoreOnThread second(settings_);
  const Limit limit = SharedLimit("100/s burst 1000");
  const Limit used_up = SharedLimit("1/day");
  // One key on each server, the last two used up.
  std::vector<std::string> keys;
  for (const Server& server : servers_) {
    for (int i = 0; keys.size() == static_cast<std::size_t>(&server - servers_); ++i) {
      const std::string key = "k" + std::to_string(i);
      ChargeOne(store, key, used_up);
      if (server.Ask({"EXISTS", "weir1:{" + key + "}:r:t"}) == ":1\r\n") keys.push_back(key);
    }
  }
  Several reset(store, {keys[0]}, limit, Verb::kReset);
  ASSERT_TRUE(reset.Ask(store));

  const auto left = [&] { return Left(store, keys[0], limit); };
  const auto deny = [&](StoreOnThread& by, const std::string& key) {
    Several group(by, {keys[0], key}, limit);
    group.charges[0].cost = 40;
    group.charges[1].limit = &used_up;
    EXPECT_FALSE(group.Ask(by));
  };
  const auto state = [&] { return servers_[0].Ask({"GET", "weir1:{" + keys[0] + "}:r:t"}); };
  // A server that is stopped lets nobody connect: whoever asks it then must be connected.
  for (StoreOnThread* asker : {&first, &second}) {
    for (const std::string& key : keys) Left(*asker, key, used_up);
  }
  servers_[1].Signal(SIGSTOP);
  servers_[2].Signal(SIGSTOP);
  const std::string at_first = state();
  std::jthread one([&] { deny(first, keys[1]); });
  ASSERT_TRUE(Eventually([&] { return state() != at_first; }));
  const std::string with_one = state();
  std::jthread two([&] { deny(second, keys[2]); });
  ASSERT_TRUE(Eventually([&] { return state() != with_one; }));
  servers_[1].Signal(SIGCONT);
  one.join();
  ASSERT_TRUE(Eventually([&] { return left() == 1000; }));  // Of the second nothing is left.
  const SteadyTime began = SystemClock().Read().steady;
  Several taken(store, {keys[0]}, limit);
  taken.charges[0].cost = 500;
  ASSERT_TRUE(taken.Ask(store));
  servers_[2].Signal(SIGCONT);
  two.join();
  const std::int64_t after = left();
  const Duration passed = SystemClock().Read().steady - began;
  EXPECT_LE(after, 501 + passed / milliseconds(10));
}

TEST_F(RealShards, NeverLetTooMuchThroughWhenAttackedFromAllSides) {
  StoreOnThread one(settings_);
  StoreOnThread two(settings_);
  const Limit limit = SharedLimit("200/day");
  std::atomic<int> allowed{0};
  const auto attack = [&](StoreOnThread& store, unsigned seed) {
    for (int i = 0; i < 300; ++i) {
      std::vector<std::string> keys = {kKeys[seed % 8], kKeys[(seed + 3) % 8], "all"};
      seed = seed * 1'103'515'245 + 12'345;
      if (Several(store, keys, limit).Ask(store)) ++allowed;
    }
  };
  std::thread other([&] { attack(two, 7); });
  attack(one, 1);
  other.join();
  EXPECT_LE(allowed.load(), 200);
  EXPECT_GE(allowed.load(), 190);
}

TEST_F(RealShards, DenyLocallyWhatIsKnownToBeExhausted) {
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("10/day");
  // So many that several servers have some, whatever their ports: only then it is remembered.
  std::vector<std::string> names = {"lone"};
  for (int i = 0; i < 60; ++i) names.push_back("p" + std::to_string(i));
  for (int i = 0; i < 10; ++i) ChargeOne(store, "lone", limit);
  EXPECT_FALSE(Several(store, names, limit).Ask(store));
  for (const Server& server : servers_) server.Signal(SIGSTOP);
  EXPECT_FALSE(Several(store, names, limit).Ask(store));
  for (const Server& server : servers_) server.Signal(SIGCONT);
  Several reset(store, {"lone"}, limit, Verb::kReset);
  EXPECT_TRUE(reset.Ask(store));
  EXPECT_TRUE(Several(store, names, limit).Ask(store));
}

TEST_F(RealShards, EndAGroupWithAnErrorWhenOneOfThemHangs) {
  settings_.timeout = milliseconds(250);
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("10/day");
  ASSERT_TRUE(Several(store, kKeys, limit).Ask(store));
  // Which server has which key depends on its port; one of them may have none of these.
  const auto has_a = [](const Server& server) {
    return server.Ask({"EXISTS", "weir1:{a}:r:t"}) == ":1\r\n";
  };
  const Server& hangs = *std::ranges::find_if(servers_, has_a);
  hangs.Signal(SIGSTOP);
  Several group(store, kKeys, limit);
  EXPECT_LT(store.Ask({&group.group, 1}), milliseconds(450));
  ASSERT_TRUE(group.group.error);
  EXPECT_EQ(group.group.error->code, ErrorCode::kDeadline);
  // What was taken elsewhere is given back all the same, if a little later.
  for (const std::string& key : kKeys) {
    const auto is_as_before = [&] {
      Several peek(store, {key}, limit, Verb::kPeek);
      store.Ask({&peek.group, 1});
      return peek.group.error || peek.group.decision.remaining == 9;
    };
    EXPECT_TRUE(Eventually(is_as_before)) << key;
  }
  hangs.Signal(SIGCONT);
}

TEST_F(RealShards, CommitAndCancelReservationsWhoeverMadeThem) {
  StoreOnThread one(settings_);
  StoreOnThread two(settings_);
  const Limit limit = SharedLimit("10/day");
  Several reserved(one, kKeys, limit);
  for (Charge& charge : reserved.charges) charge.cost = 6;
  reserved.group.action = Action::kReserve;
  ASSERT_TRUE(reserved.Ask(one));
  ASSERT_NE(reserved.group.reservation, ReservationId::kNone);
  for (const std::string& key : kKeys) EXPECT_EQ(Left(one, key, limit), 4) << key;

  const LimitInForce in_force{.rule = two.Hash("r"), .name = "r", .limit = &limit};
  std::vector<std::uint64_t> settled(64);
  Group commit{.action = Action::kCommit,
               .in_force = {&in_force, 1},
               .reservation = reserved.group.reservation,
               .cost = 2,
               .settled = settled};
  two.Ask({&commit, 1});
  EXPECT_FALSE(commit.error) << commit.error->message;
  EXPECT_EQ(commit.settled_count, kKeys.size());
  for (const std::string& key : kKeys) EXPECT_EQ(Left(one, key, limit), 8) << key;
  commit.error.reset();
  two.Ask({&commit, 1});
  ASSERT_TRUE(commit.error);
  EXPECT_EQ(commit.error->code, ErrorCode::kNotFound);
  for (const std::string& key : kKeys) EXPECT_EQ(Left(one, key, limit), 8) << key;
}

// While a server is away a commit settles what it can; repeated, it settles the rest, and nothing
// twice.
TEST_F(RealShards, FinishACommitThatIsRepeatedOnceAllServersAreBack) {
  settings_.timeout = milliseconds(100);
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("10/day");
  for (std::size_t away = 0; away < std::size(servers_); ++away) {
    const ReservedKeys reserved(store, limit, "away" + std::to_string(away) + "-");
    servers_[away].Signal(SIGSTOP);
    EXPECT_TRUE(reserved.Settle(store, Action::kCommit).has_value()) << away;
    servers_[away].Signal(SIGCONT);
    ASSERT_TRUE(Eventually([&] { return reserved.Answer(store); })) << away;
    const std::optional<Error> repeated = reserved.Settle(store, Action::kCommit);
    EXPECT_FALSE(repeated) << away << repeated->message;
    reserved.ExpectLeft(store, 8);
    const std::optional<Error> again = reserved.Settle(store, Action::kCommit);
    ASSERT_TRUE(again) << away;
    EXPECT_EQ(again->code, ErrorCode::kNotFound);
    reserved.ExpectLeft(store, 8);
  }
}

// Whoever asks first decides for all keys, also when that ended half-way and somebody else wants
// something different afterwards.
TEST_F(RealShards, SettleAllKeysTheSameWayWhenACommitThatFailedIsFollowedByACancel) {
  settings_.timeout = milliseconds(100);
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("10/day");
  for (std::size_t away = 0; away < std::size(servers_); ++away) {
    const ReservedKeys reserved(store, limit, "away" + std::to_string(away) + "-");
    servers_[away].Signal(SIGSTOP);
    EXPECT_TRUE(reserved.Settle(store, Action::kCommit).has_value()) << away;
    servers_[away].Signal(SIGCONT);
    ASSERT_TRUE(Eventually([&] { return reserved.Answer(store); })) << away;
    const std::optional<Error> cancelled = reserved.Settle(store, Action::kCancel);
    if (cancelled) {
      EXPECT_EQ(cancelled->code, ErrorCode::kNotFound) << away << cancelled->message;
    }
    reserved.ExpectLeft(store, cancelled ? 8 : 10);
  }
}

TEST_F(RealShards, SettleAllKeysTheSameWayWhenACommitAndACancelRace) {
  StoreOnThread one(settings_);
  StoreOnThread two(settings_);
  const Limit limit = SharedLimit("10/day");
  for (int round = 0; round < 100; ++round) {
    const ReservedKeys reserved(one, limit, std::to_string(round) + "-");
    std::optional<Error> cancelled;
    std::thread other([&] { cancelled = reserved.Settle(two, Action::kCancel); });
    const std::optional<Error> committed = reserved.Settle(one, Action::kCommit);
    other.join();
    EXPECT_NE(committed.has_value(), cancelled.has_value()) << round;
    reserved.ExpectLeft(one, committed ? 10 : 8);
    if (HasFailure()) return;
  }
}

TEST_F(RealShards, LeaveNoReservationBehindWhenAPartDenies) {
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("10/day");
  for (int i = 0; i < 10; ++i) ChargeOne(store, "lone", limit);
  Several reserved(store, {"a", "b", "c", "d", "lone"}, limit);
  reserved.group.action = Action::kReserve;
  EXPECT_FALSE(reserved.Ask(store));
  EXPECT_EQ(reserved.group.reservation, ReservationId::kNone);
  for (const char* key : {"a", "b", "c", "d"}) EXPECT_EQ(Left(store, key, limit), 10) << key;
  for (const Server& server : servers_) EXPECT_EQ(server.Ask({"KEYS", "*#*"}), "*0\r\n");
}

TEST_F(RealShards, ReleaseLeasesOfSeveralKeys) {
  StoreOnThread store(settings_);
  const Limit limit =
      *Limit::Make({.algorithm = Algorithm::kConcurrency, .count = 2})->ForSharedStore();
  Several first(store, kKeys, limit);
  ASSERT_TRUE(first.Ask(store));
  Several second(store, kKeys, limit);
  ASSERT_TRUE(second.Ask(store));
  EXPECT_FALSE(Several(store, kKeys, limit).Ask(store));
  const LimitInForce in_force{.rule = store.Hash("r"), .name = "r", .limit = &limit};
  Group cancel{.action = Action::kCancel,
               .in_force = {&in_force, 1},
               .reservation = first.group.reservation};
  store.Ask({&cancel, 1});
  EXPECT_FALSE(cancel.error) << cancel.error->message;
  for (const std::string& key : kKeys) EXPECT_EQ(Left(store, key, limit), 1) << key;
}

}  // namespace
}  // namespace weir::redis
