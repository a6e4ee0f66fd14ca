// Groups whose keys live on several servers, in a simulated world where it can be arranged what
// comes in between.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "asked_groups.h"
#include "simulated_store.h"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

constexpr Now kNow{SteadyTime(kStart.time_since_epoch()), kStart};

class SplitReservation : public testing::TestWithParam<Servers> {
 protected:
  Charge Ask(std::string_view key, const Limit& limit) {
    return {.rule = "rule", .key = key, .hash = store_.Hash(key), .limit = &limit};
  }
  Decision Check(const Charge& charge) {
    Decision decision;
    Group group{.charges = {&charge, 1}, .decisions = {&decision, 1}};
    Submit({&group, 1});
    return group.decision;
  }
  void Submit(std::span<Group> groups) {
    Ignored ignored;
    store_.Submit(groups, kNow, ignored);
  }

  bool Has(sim::RedisServer& server, std::string_view key) {
    return std::ranges::any_of(server.core().keyspace().Keys(), [key](const std::string& it) {
      return it.find(key) != std::string::npos;
    });
  }
  // A key that lives on another server than `key` does, with one unit taken.
  std::string UsedApartFrom(std::string_view key, const Limit& limit) {
    for (int i = 0; i < 50; ++i) {
      std::string other = "user=bob" + std::to_string(i);
      EXPECT_TRUE(Check(Ask(other, limit)).allowed);
      for (const auto& server : store_.servers()) {
        if (Has(*server, other) && !Has(*server, key)) return other;
      }
    }
    ADD_FAILURE() << "all keys are on one server";
    return "";
  }

  SimulatedStore store_{GetParam(), 1, kStart};
};

TEST_P(SplitReservation, LeavesItsPlaceInAQueueWhenAnotherKeyDeniesItAndSomebodyIsBehind) {
  const Limit queue =
      *Limit::Parse("1/s burst 9", {.algorithm = Algorithm::kLeakyBucket, .queue = true})
           ->ForSharedStore();
  const Limit once = *Limit::Parse("1/h")->ForSharedStore();
  const Charge place = Ask("user=ann", queue);
  EXPECT_EQ(Check(place).delay, 0s);
  const std::string used_up = UsedApartFrom("user=ann", once);

  const std::array<Charge, 2> both{place, Ask(used_up, once)};
  std::array<Decision, 2> decisions;
  Decision behind;
  std::array<Group, 2> groups{
      Group{.action = Action::kReserve, .charges = both, .decisions = decisions},
      Group{.charges = {&place, 1}, .decisions = {&behind, 1}}};
  Submit(groups);
  EXPECT_FALSE(groups[0].decision.allowed);
  EXPECT_EQ(groups[1].decision.delay, 2s);

  // Not together with the one before.
  EXPECT_EQ(Check(place).delay, 3s);
  EXPECT_EQ(store_.Problem(), "");
}

TEST_P(SplitReservation, GivesBackWhatItTookElsewhereWhenOneKeyDenies) {
  const Limit few = *Limit::Parse("5/h")->ForSharedStore();
  const Limit once = *Limit::Parse("1/h")->ForSharedStore();
  const Charge one = Ask("user=ann", few);
  EXPECT_EQ(Check(one).remaining, 4);
  const std::string used_up = UsedApartFrom("user=ann", once);
  const std::array<Charge, 2> both{one, Ask(used_up, once)};
  std::array<Decision, 2> decisions;
  Group group{.action = Action::kReserve, .charges = both, .decisions = decisions};
  Submit({&group, 1});
  EXPECT_FALSE(group.decision.allowed);
  EXPECT_EQ(Check(one).remaining, 3);
}

INSTANTIATE_TEST_SUITE_P(Divided, SplitReservation,
                         testing::Values(Servers::kThreeShards, Servers::kCluster));

}  // namespace
}  // namespace weir::conformance
