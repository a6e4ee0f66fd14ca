// What the script makes of values that are not as it left them: damaged, foreign, of a limit that
// has changed since, or of a clock that was set.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "asked_groups.h"
#include "script_store.h"
#include "store/redis/key_text.h"
#include "store/redis/reservation_id.h"
#include "store/redis/shared_limit_under_test.h"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

std::vector<Limit> OneLimitPerState() {
  return {redis::SharedLimit("10/10s"),
          redis::SharedLimit("10/8000h"),
          redis::SharedLimit("10/10s", {.algorithm = Algorithm::kLeakyBucket, .queue = true}),
          redis::SharedLimit("10/10s", {.algorithm = Algorithm::kFixedWindow}),
          *Limit::Make({.algorithm = Algorithm::kFixedWindow,
                        .count = 10,
                        .align = Align::kCalendar,
                        .calendar = CalendarPeriod::kMonth}),
          redis::SharedLimit("10/10s", {.algorithm = Algorithm::kSlidingWindow}),
          redis::SharedLimit("10/10s", {.algorithm = Algorithm::kSlidingWindow, .strict = true}),
          redis::SharedLimit("10/10s", {.algorithm = Algorithm::kSlidingLog}),
          redis::SharedLimit("10 concurrent lease 10s")};
}

class ScriptValues : public testing::Test {
 protected:
  Charge ChargeFor(std::string_view key, const Limit& limit, std::int64_t cost = 1) {
    return {.rule = "rule", .key = key, .hash = store_.Hash(key), .limit = &limit, .cost = cost};
  }
  Decision Ask(std::vector<Charge> charges) {
    std::vector<Decision> decisions(charges.size());
    Group group{.charges = charges, .decisions = decisions};
    SubmitOne(store_, group, {SteadyTime(now_.time_since_epoch()), now_});
    EXPECT_EQ(store_.problem(), "");
    EXPECT_FALSE(group.error) << group.error->message;
    return group.decision;
  }
  Decision Ask(std::string_view key, const Limit& limit, std::int64_t cost = 1,
               Verb verb = Verb::kCheck) {
    Charge charge = ChargeFor(key, limit, cost);
    charge.verb = verb;
    return Ask({charge});
  }
  std::int64_t Remaining(std::string_view key, const Limit& limit) {
    return Ask(key, limit, 0, Verb::kPeek).remaining;
  }
  std::string KeyOf(std::string_view key, const Limit& limit) {
    std::string text;
    redis::AppendKey(text, ChargeFor(key, limit));
    return text;
  }
  std::string ValueOf(const std::string& key) {
    const auto* text = std::get_if<std::string>(store_.redis().keyspace().Look(key));
    return text == nullptr ? "" : *text;
  }
  std::vector<std::string> Everything() {
    std::vector<std::string> all;
    for (const std::string& key : store_.redis().keyspace().Keys()) {
      if (key.find("}:#") != std::string::npos) continue;  // What leases can be given back by.
      all.push_back(key + "=" + ValueOf(key) + "@" +
                    std::to_string(*store_.redis().keyspace().ExpiresAt(key)));
    }
    return all;
  }

  WallTime now_ = kStart;
  ScriptStore store_{ScriptStore::Expiry::kAsTold};
};

TEST_F(ScriptValues, ThatAreNotOursAreReplacedAndCountedAndFailNoOtherKey) {
  const Limit other = redis::SharedLimit("1000/10s");
  std::size_t expected = 0;
  std::int64_t other_left = 1000;
  for (const Limit& limit : OneLimitPerState()) {
    const std::string key = KeyOf("ann", limit);
    Ask("ann", limit, 3);
    const std::string good = ValueOf(key);
    ASSERT_NE(good, "");
    std::vector<std::string> bad{"abc",
                                 "nan",
                                 "1e400",
                                 "-17",
                                 "0x1234567890abcdef",
                                 good.substr(0, good.size() - 1),
                                 std::string(36, '\xff'),
                                 std::string(44, '\xff'),
                                 std::string(116, '\xff'),
                                 std::string(200, '\0'),
                                 std::string("99999999999999999999999")};
    if (redis::KindOf(limit) == redis::StateKind::kBucket) bad[5] = "12345";
    // Alone, and beside another.
    const auto expect_replaced = [&](const auto& spoil, std::string_view what) {
      spoil();
      EXPECT_TRUE(Ask({ChargeFor("ann", limit), ChargeFor("bob", other)}).allowed) << key << what;
      EXPECT_EQ(store_.corrupt(), ++expected) << key << " " << what;
      EXPECT_EQ(Remaining("bob", other), --other_left) << key;
      EXPECT_EQ(Remaining("ann", limit), limit.spec().queue ? 10 : 9) << key << " " << what;
      spoil();
      EXPECT_TRUE(Ask("ann", limit).allowed) << key << " " << what;
      EXPECT_EQ(store_.corrupt(), ++expected) << key << " " << what;
      EXPECT_EQ(Remaining("ann", limit), limit.spec().queue ? 10 : 9) << key << " " << what;
    };
    for (const std::string& value : bad) {
      expect_replaced([&] { store_.redis().Execute({"SET", key, value, "PX", "60000"}); }, value);
    }
    for (const char* command : {"RPUSH", "HSET", "ZADD"}) {
      const auto spoil = [&] {
        store_.redis().Execute({"DEL", key});
        store_.redis().Execute({command, key, "1", "2"});
        store_.redis().Execute({"PEXPIRE", key, "60000"});
      };
      expect_replaced(spoil, command);
    }
    store_.redis().Execute({"DEL", key});
  }
}

TEST_F(ScriptValues, OfAnEmptyStringAreNotOursEither) {
  for (const Limit& limit : OneLimitPerState()) {
    const std::string key = KeyOf("ann", limit);
    store_.redis().Execute({"SET", key, "", "PX", "60000"});
    EXPECT_TRUE(Ask("ann", limit, 1).allowed);
    EXPECT_EQ(Remaining("ann", limit), limit.spec().queue ? 10 : 9) << key;
  }
}

TEST_F(ScriptValues, AreWrittenOnlyByWhatChangesThem) {
  for (const Limit& limit : OneLimitPerState()) {
    const Limit other = redis::SharedLimit("100/10s");
    const std::int64_t all = limit.spec().queue ? 11 : 10;
    Ask("ann", limit, all);
    Ask("bob", other, 5);
    const std::vector<std::string> before = Everything();
    EXPECT_FALSE(Ask("ann", limit).allowed);
    EXPECT_FALSE(Ask({ChargeFor("bob", other), ChargeFor("ann", limit)}).allowed);
    Ask("ann", limit, 3, Verb::kPeek);
    Ask("ann", limit, 0);
    Ask("carl", limit, 12);
    EXPECT_EQ(Everything(), before) << KeyOf("ann", limit);
    Ask("ann", limit, 0, Verb::kReset);
    EXPECT_EQ(ValueOf(KeyOf("ann", limit)), "");
    Ask("bob", other, 0, Verb::kReset);
  }
  EXPECT_EQ(Everything(), std::vector<std::string>());
}

TEST_F(ScriptValues, ExpireWhenTheyAreFreshAndNotSooner) {
  now_ += 123us;
  for (const Limit& limit : OneLimitPerState()) {
    const Decision decision = Ask("ann", limit, 4);
    const auto expires_at = *store_.redis().keyspace().ExpiresAt(KeyOf("ann", limit));
    const Duration ttl = std::chrono::milliseconds(expires_at) - now_.time_since_epoch();
    EXPECT_GE(ttl, decision.reset_after) << KeyOf("ann", limit);
    EXPECT_LE(ttl, decision.reset_after + 2ms) << KeyOf("ann", limit);
  }
}

TEST_F(ScriptValues, OfWindowsAreScaledWhenThePolicyChangesAndKeptWhenOnlyTheTierDoes) {
  for (LimitSpec spec : {LimitSpec{.algorithm = Algorithm::kFixedWindow},
                         LimitSpec{.algorithm = Algorithm::kSlidingWindow},
                         LimitSpec{.algorithm = Algorithm::kSlidingWindow, .strict = true},
                         LimitSpec{.algorithm = Algorithm::kSlidingLog}}) {
    const Limit ten = redis::SharedLimit("10/10s", spec);
    const Limit twenty = redis::SharedLimit("20/10s", spec);
    const Limit three = redis::SharedLimit("3/10s", spec);
    Ask("ann", ten, 5);
    EXPECT_EQ(Ask("ann", twenty, 1).remaining, 9) << KeyOf("ann", ten);   // 5 of 10: 10 of 20.
    EXPECT_EQ(Ask("ann", three, 1).remaining, 0) << KeyOf("ann", ten);    // 11 of 20: 2 of 3.
    EXPECT_EQ(Remaining("ann", redis::SharedLimit("10/20s", spec)), 10);  // Starts anew.

    std::array<Limit, 2> tiers{redis::SharedLimit("10/10s", spec),
                               redis::SharedLimit("20/10s", spec)};
    Limit::ShareKeys(tiers);
    Ask("bob", tiers[0], 5);
    EXPECT_EQ(Ask("bob", tiers[1], 1).remaining, 14);
    EXPECT_EQ(Ask("bob", tiers[0], 1).remaining, 3);
  }
}

TEST_F(ScriptValues, OfAClockThatWasSetBackLockNobodyOutForLongerThanADrain) {
  for (const Limit& limit : OneLimitPerState()) {
    now_ = kStart + 12h;
    const std::int64_t all = limit.spec().queue ? 11 : 10;
    EXPECT_TRUE(Ask("ann", limit, all).allowed);
    now_ -= 1h;
    const Decision denied = Ask("ann", limit);
    EXPECT_FALSE(denied.allowed) << KeyOf("ann", limit);
    EXPECT_LE(denied.retry_after, limit.time_to_fresh()) << KeyOf("ann", limit);
    now_ += denied.retry_after + 1us;
    EXPECT_TRUE(Ask("ann", limit).allowed) << KeyOf("ann", limit);
  }
}

TEST_F(ScriptValues, OfOneKeyAreSharedByAllGroupsOfACall) {
  std::string name = "a";
  for (const Limit& limit : OneLimitPerState()) {
    name.push_back('a');
    std::vector<Charge> charges(120, ChargeFor(name, limit));
    std::vector<Decision> decisions(charges.size());
    std::vector<Group> groups;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      groups.push_back({.charges = {&charges[i], 1}, .decisions = {&decisions[i], 1}});
    }
    class Counting final : public Completion {
     public:
      void OnDecided(Group& group) noexcept override { admitted += group.decision.allowed ? 1 : 0; }
      int admitted = 0;
    } counting;
    store_.Submit(groups, {SteadyTime(now_.time_since_epoch()), now_}, counting);
    EXPECT_EQ(store_.problem(), "");
    EXPECT_EQ(counting.admitted, limit.spec().queue ? 11 : 10) << KeyOf(name, limit);
  }
}

TEST_F(ScriptValues, OfAReservationInSeveralSlotsAreClaimedThroughTheFirst) {
  const Limit limit = redis::SharedLimit("10/10s");
  const Charge ann = ChargeFor("ann", limit, 4);
  const Charge bob = ChargeFor("bob", limit, 4);
  std::array<Decision, 2> decisions;
  const std::uint16_t slots[] = {redis::SlotOfTag("ann"), redis::SlotOfTag("bob")};
  const ReservationId id = redis::DrawReservationId(slots[0]);
  Group first{.action = Action::kReserve, .charges = {&ann, 1}, .decisions = {&decisions[0], 1}};
  Group second{.action = Action::kReserve, .charges = {&bob, 1}, .decisions = {&decisions[1], 1}};
  redis::ScriptCall call;
  ASSERT_TRUE(call.Add(first, now_, {.id = id, .other_slots = {&slots[1], 1}}));
  store_.redis().SetTime(std::chrono::microseconds(now_.time_since_epoch() / 1us));
  store_.Run(call);
  call.Clear();
  const ReservationId second_id = redis::ReservationInSlot(id, slots[1]);
  ASSERT_TRUE(call.Add(second, now_, {.id = second_id}));
  store_.Run(call);
  EXPECT_EQ(first.reservation, id);
  EXPECT_EQ(Remaining("ann", limit), 6);
  EXPECT_EQ(Remaining("bob", limit), 6);

  Group cancel{.action = Action::kCancel, .reservation = id};
  call.Clear();
  Group commit{.action = Action::kCommit, .reservation = id, .cost = 3};
  Group late{.action = Action::kCommit, .reservation = id, .cost = 1};
  ASSERT_TRUE(call.Add(cancel, now_, {.claims = true}));
  EXPECT_EQ(call.slot(), slots[0]);
  ASSERT_TRUE(call.Add(commit, now_, {.claims = true}));
  store_.Run(call);
  EXPECT_EQ(call.corrupt(), 0U);
  const redis::Settling cancelled{.action = Action::kCancel};
  for (const std::size_t i : {0U, 1U}) {
    const auto& claim = call.Claimed(i);
    EXPECT_EQ(claim.other_slots, std::vector<std::uint16_t>{slots[1]}) << i;
    EXPECT_EQ(claim.settling, cancelled) << i;
    EXPECT_EQ(claim.is_ours, i == 0) << i;
  }
  // Nothing is settled yet, and whoever comes later is told the same.
  EXPECT_EQ(Remaining("ann", limit), 6);
  call.Clear();
  ASSERT_TRUE(call.Add(late, now_, {.claims = true}));
  store_.Run(call);
  EXPECT_EQ(call.Claimed(0).settling, cancelled);
  EXPECT_FALSE(call.Claimed(0).is_ours);

  const Now now{SteadyTime(now_.time_since_epoch()), now_};
  for (const std::uint16_t slot : slots) {
    Group part{.action = Action::kCancel, .reservation = redis::ReservationInSlot(id, slot)};
    SubmitOne(store_, part, now);
    EXPECT_FALSE(part.error);
    SubmitOne(store_, part, now);
    EXPECT_TRUE(part.error);
  }
  EXPECT_EQ(Remaining("ann", limit), 10);
  EXPECT_EQ(Remaining("bob", limit), 10);
}

TEST_F(ScriptValues, OfARecordThatIsNotOursAreAsGoodAsNone) {
  const Limit limit = redis::SharedLimit("10/10s");
  const Charge ann = ChargeFor("ann", limit, 4);
  Decision decision;
  Group group{.action = Action::kReserve, .charges = {&ann, 1}, .decisions = {&decision, 1}};
  const Now now{SteadyTime(now_.time_since_epoch()), now_};
  SubmitOne(store_, group, now);
  std::string record;
  redis::AppendRecordKey(record, group.reservation);
  const std::string good = ValueOf(record);
  for (std::size_t size = 0; size < good.size(); ++size) {
    store_.redis().Execute({"SET", record, good.substr(0, size), "PX", "60000"});
    Group cancel{.action = Action::kCancel, .reservation = group.reservation};
    SubmitOne(store_, cancel, now);
    EXPECT_EQ(store_.problem(), "");
    // Its head alone is a reservation of nothing.
    EXPECT_EQ(cancel.error.has_value(), size != 13) << size;
  }
  EXPECT_EQ(Remaining("ann", limit), 6);
}

}  // namespace
}  // namespace weir::conformance
