// What a shared store does with groups, batches of them, reservations and leases, against the store
// in memory: the same requests at the same instants get the same answers.
#include <array>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "asked_groups.h"
#include "random.h"
#include "script_store.h"
#include "store/memory/memory_store.h"
#include "store/redis/shared_limit_under_test.h"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 6s;

struct NamedLimit {
  std::string name;
  Limit limit;
};

std::vector<NamedLimit> EveryNamedLimit() {
  std::vector<NamedLimit> limits;
  limits.push_back({"token", redis::SharedLimit("6/3s")});
  limits.push_back({"slow", redis::SharedLimit("2/1h burst 5")});
  limits.push_back({"owing", redis::SharedLimit("6/3s", {.overdraft = true})});
  limits.push_back({"year", redis::SharedLimit("4/8784h")});  // Too long for single numbers.
  limits.push_back({"meter", redis::SharedLimit("5/2s", {.algorithm = Algorithm::kLeakyBucket})});
  limits.push_back(
      {"queue", redis::SharedLimit("5/2s", {.algorithm = Algorithm::kLeakyBucket, .queue = true})});
  limits.push_back({"fixed", redis::SharedLimit("7/5s", {.algorithm = Algorithm::kFixedWindow})});
  limits.push_back(
      {"sliding", redis::SharedLimit("7/5s", {.algorithm = Algorithm::kSlidingWindow})});
  limits.push_back({"strict", redis::SharedLimit("7/5s", {.algorithm = Algorithm::kSlidingWindow,
                                                          .strict = true})});
  limits.push_back({"log", redis::SharedLimit("7/5s", {.algorithm = Algorithm::kSlidingLog})});
  limits.push_back({"places", redis::SharedLimit("4 concurrent", {.lease = kLease})});
  limits.push_back({"day", *Limit::Make({.algorithm = Algorithm::kFixedWindow,
                                         .count = 9,
                                         .align = Align::kCalendar,
                                         .calendar = CalendarPeriod::kDay,
                                         .zone = "Europe/Berlin"})});
  limits.push_back({"free", *Limit::Parse("unlimited")});
  limits.push_back({"shut", *Limit::Parse("deny")});
  return limits;
}

// The same groups for two stores.
struct Twin {
  std::vector<Charge> charges;
  std::vector<Decision> decisions;
  std::vector<Receipt> receipts;
  std::array<std::uint64_t, 4> settled{};
  Group group;
};

std::string Told(const Decision& decision) {
  return std::string(decision.allowed ? "allowed " : "denied ") +
         std::string(NameOf(decision.reason)) + " " + std::string(decision.rule) +
         " remaining=" + std::to_string(decision.remaining) + "/" + std::to_string(decision.limit) +
         " cost=" + std::to_string(decision.cost) +
         " retry=" + std::to_string(decision.retry_after.count()) +
         " reset=" + std::to_string(decision.reset_after.count()) +
         " delay=" + std::to_string(decision.delay.count()) +
         (decision.reservation != ReservationId::kNone ? " reserved" : "");
}

class TwoStores {
 public:
  explicit TwoStores(std::uint64_t seed)
      : random_(seed), memory_({.cap_bytes = kMinCapBytes, .max_reservations = 4096}, now_) {
    for (const NamedLimit& named : limits_) {
      in_force_.push_back({.name = named.name, .limit = &named.limit});
    }
    for (LimitInForce& each : in_force_) each.rule = memory_.Hash(each.name);
    std::ranges::sort(in_force_, {}, &LimitInForce::rule);
  }

  // Some groups at once. What differs, or nothing.
  std::string Step() {
    const Duration step = random_.OneOf<Duration>({0us, 1us, 130ms, 700ms, 2s, 9s});
    now_.steady += step;
    now_.wall += step;
    // Servers count the time that records live in milliseconds, and forget them a little later.
    std::erase_if(held_, [this](const auto& one) {
      return now_.wall >= one.second.ends && now_.wall < one.second.ends + 3ms;
    });
    // A settlement takes two rounds, so others in its call would be decided before it.
    const bool settles = !held_.empty() && random_.Chance(25);
    const auto count = settles ? 1 : static_cast<std::size_t>(random_.Weighted({0, 60, 20, 10, 5}));
    std::vector<Twin> ours(count);
    std::vector<Twin> theirs(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (settles) {
        MakeSettlement(ours[i]);
      } else {
        MakeGroup(ours[i]);
      }
      theirs[i].charges = ours[i].charges;
      theirs[i].group = ours[i].group;
    }
    for (Twin& twin : ours) Settle(twin, [](const Held& held) { return held.shared; });
    for (Twin& twin : theirs) Settle(twin, [](const Held& held) { return held.memory; });
    for (std::size_t i = 0; i < count; ++i) held_.erase(ours[i].group.cost >> 32);
    return Compare(Run(shared_, ours), Run(memory_, theirs), ours, theirs);
  }

  const std::string& problem() const { return shared_.problem(); }
  std::size_t corrupt() const { return shared_.corrupt(); }

 private:
  struct Held {
    ReservationId shared;
    ReservationId memory;
    WallTime ends{};
  };

  void MakeSettlement(Twin& twin) {
    twin.group.in_force = in_force_;
    auto chosen = held_.begin();
    std::advance(chosen, random_.Between(0, static_cast<std::int64_t>(held_.size()) - 1));
    twin.group.action = random_.OneOf({Action::kCommit, Action::kCancel});
    twin.group.keeps_cost = random_.Chance(10);
    twin.group.cost = random_.Between(0, 5) | chosen->first << 32;
  }

  void MakeGroup(Twin& twin) {
    twin.group.action = random_.Chance(25) ? Action::kReserve : Action::kDecide;
    if (random_.Chance(3)) twin.group.ttl = 3s;
    const Verb verb =
        twin.group.action == Action::kReserve
            ? Verb::kCheck
            : random_.OneOf({Verb::kCheck, Verb::kCheck, Verb::kCheck, Verb::kCheck, Verb::kPeek,
                             Verb::kRefund, Verb::kPenalize, Verb::kReset});
    const auto charges = random_.Weighted({0, 30, 30, 20, 10, 5});
    for (int i = 0; i < static_cast<int>(charges); ++i) {
      const auto& named = limits_[static_cast<std::size_t>(
          random_.Between(0, static_cast<int>(limits_.size()) - (random_.Chance(90) ? 2 : 1)))];
      const std::string_view key = random_.OneOf<std::string_view>({"ann", "bob"});
      twin.charges.push_back({.rule = named.name,
                              .key = key,
                              .hash = memory_.Hash(named.name + "/" + std::string(key)),
                              .limit = &named.limit,
                              .cost = random_.OneOf<std::int64_t>({1, 1, 1, 2, 3, 0, 12}),
                              .verb = verb,
                              .shadow = random_.Chance(15),
                              .keeps_cost = random_.Chance(10),
                              .wait = random_.Chance(10) ? Duration(400ms) : Duration(0)});
    }
  }

  template <typename Choose>
  void Settle(Twin& twin, Choose choose) {
    const bool settles =
        twin.group.action == Action::kCommit || twin.group.action == Action::kCancel;
    if (settles) {
      const auto held = held_.find(twin.group.cost >> 32);
      twin.group.reservation = choose(held == held_.end() ? Held{} : held->second);
    }
    twin.decisions.resize(twin.charges.size());
    twin.receipts.resize(twin.charges.size());
    twin.group.charges = twin.charges;
    twin.group.decisions = twin.decisions;
    twin.group.receipts = twin.receipts;
    twin.group.settled = twin.settled;
  }

  std::vector<Group> Run(Store& store, std::vector<Twin>& twins) {
    std::vector<Group> groups;
    for (Twin& twin : twins) {
      groups.push_back(twin.group);
      groups.back().cost &= 0xffff'ffff;
    }
    Ignored ignored;
    store.Submit(groups, now_, ignored);
    return groups;
  }

  std::string Compare(const std::vector<Group>& ours, const std::vector<Group>& theirs,
                      const std::vector<Twin>& our_twins, const std::vector<Twin>& their_twins) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const std::string at = "group " + std::to_string(i) + " of " + std::to_string(ours.size());
      if (ours[i].error.has_value() != theirs[i].error.has_value()) {
        return at + ": error " + (ours[i].error ? ours[i].error->message : "none") + " against " +
               (theirs[i].error ? theirs[i].error->message : "none");
      }
      if (ours[i].error) continue;
      const bool settles = ours[i].action == Action::kCommit || ours[i].action == Action::kCancel;
      // Of several that are equally near to exhaustion any may speak for a settlement.
      if (!settles && Told(ours[i].decision) != Told(theirs[i].decision)) {
        return at + ":\n  " + Told(ours[i].decision) + "\n  " + Told(theirs[i].decision);
      }
      for (std::size_t c = 0; c < ours[i].charges.size(); ++c) {
        if (Told(ours[i].decisions[c]) != Told(theirs[i].decisions[c]) ||
            our_twins[i].receipts[c].charged != their_twins[i].receipts[c].charged) {
          return at + ", charge " + std::to_string(c) + ":\n  " + Told(ours[i].decisions[c]) +
                 "\n  " + Told(theirs[i].decisions[c]) + "\n  charged " +
                 std::to_string(our_twins[i].receipts[c].charged) + " against " +
                 std::to_string(their_twins[i].receipts[c].charged);
        }
      }
      if (settles) {
        if (ours[i].settled_count != theirs[i].settled_count) return at + ": settled count";
      } else if (ours[i].reservation != ReservationId::kNone) {
        const Duration life = ours[i].action == Action::kReserve ? ours[i].ttl : kLease;
        held_[++last_] = {ours[i].reservation, theirs[i].reservation, now_.wall + life};
      }
    }
    return {};
  }

  Random random_;
  Now now_{SteadyTime(kStart.time_since_epoch()), kStart};
  const std::vector<NamedLimit> limits_ = EveryNamedLimit();
  std::vector<LimitInForce> in_force_;
  MemoryStore memory_;
  ScriptStore shared_{ScriptStore::Expiry::kAsTold};
  std::map<std::int64_t, Held> held_;
  std::int64_t last_ = 0;
};

TEST(ScriptGroups, GetTheAnswersThatMemoryGives) {
  const char* const given = std::getenv("WEIR_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("WEIR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  for (std::uint64_t run = 0; run < 60; ++run) {
    TwoStores stores(Derive(seed, run));
    for (int step = 0; step < 250; ++step) {
      const std::string difference = stores.Step();
      ASSERT_EQ(stores.problem(), "") << "run " << run << " step " << step;
      ASSERT_EQ(difference, "") << "run " << run << " step " << step;
    }
    EXPECT_EQ(stores.corrupt(), 0U);
  }
}

}  // namespace
}  // namespace weir::conformance
