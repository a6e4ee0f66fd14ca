// Every algorithm on real servers against the oracle. The servers' own clocks say when a request
// was decided; the oracle is asked the same as of that time, and must say the same in every field.
//
// WEIR_SEED=n   repeat a run (the seed is printed; times differ, because they are the servers')
// WEIR_STEPS=n  steps per algorithm (default 8,000)
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "oracle.h"
#include "random.h"
#include "step_verb.h"
#include "store_on_servers.h"
#include "trace.h"
#include "trace_spec.h"

namespace weir::conformance {
namespace {

using on_servers::ServersClock;
using on_servers::StoreOnServers;

constexpr TraceOptions kOptions{.clock_damage = false,
                                .ticks_per_nanosecond = 1,
                                .most_per_second = kMaxSharedBucketRate,
                                .most_cost = kMaxCount};
constexpr Duration kYear = std::chrono::hours(24 * 365);
// As far as zone databases know what will be.
constexpr Duration kMostAhead = 9 * kYear;

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

Now AsOf(WallTime wall) { return {SteadyTime(wall.time_since_epoch()), wall}; }

// One key on the servers, beside an oracle that is told everything.
class Duel {
 public:
  Duel(StoreOnServers& store, ServersClock& clock, Family family, std::uint64_t seed)
      : store_(store), clock_(clock), random_(seed), family_(family) {
    spec_ = RandomSpec(family, kOptions, random_);
    spec_.count = std::min(spec_.count, MostCount());
    key_ = "user=duel-" + std::to_string(seed);
  }

  // What went wrong first.
  std::optional<std::string> Run(int steps) {
    const auto made = Limit::Make(spec_);
    if (!made) return "refused: " + made.error().message;
    const auto shared = made->ForSharedStore();
    if (!shared) return std::nullopt;  // Beyond what a shared store takes.
    limit_ = *shared;
    for (int number = 0; number < steps; ++number) {
      if (number > 0) Move();
      Action action = RandomAction();
      action.number = number;
      if (auto wrong = Step(action)) return Describe(spec_) + "\n" + history_ + *wrong;
    }
    return std::nullopt;
  }

 private:
  struct Open {
    int number;
    std::int64_t cost;
    ReservationId reservation;
    Receipt receipt;
    bool reserved;
  };

  std::int64_t MostCount() const {
    const bool log = family_ == Family::kSlidingLog || family_ == Family::kConcurrency;
    return log ? kMaxSharedLogEntries : kMaxCount;
  }

  void Move() {
    if (!clock_.can_move()) return;
    const Duration nudge(random_.Between(-2000, 2000));
    Duration step{0};
    switch (random_.Weighted({50, 10, 15, 8, 12})) {
      case 0:
        return;
      case 1:
        step = Duration(random_.AnySize(1, std::max<std::int64_t>(1, Period().count())));
        break;
      case 2:
        step = last_.retry_after == kNever ? Duration(0) : last_.retry_after + nudge;
        break;
      case 3:
        step = last_.reset_after + nudge;
        break;
      default:
        if (oracle_ != nullptr) step = oracle_->NextBoundary(AsOf(at_)).wall - at_ + nudge;
    }
    if (step > Duration(0) && step < kYear && clock_.ahead() + step < kMostAhead) {
      clock_.Advance(step);
    }
  }

  Duration Period() const {
    if (spec_.algorithm == Algorithm::kConcurrency) return spec_.lease;
    return spec_.align == Align::kCalendar ? Duration(std::chrono::hours(24 * 31)) : spec_.period;
  }

  Action RandomAction() {
    Action action;
    const int settles = open_.empty() ? 0 : 15;
    switch (random_.Weighted({70, 7, 5, 3, 1, settles})) {
      case 0:
        break;
      case 1:
        action.verb = Verb::kPeek;
        break;
      case 2:
        action.verb = Verb::kRefund;
        break;
      case 3:
        action.verb = Verb::kPenalize;
        break;
      case 4:
        action.verb = Verb::kReset;
        break;
      default:
        return SettleOne();
    }
    action.cost = RandomCost();
    if (random_.Chance(10) && spec_.max_wait > Duration(0)) {
      action.wait = Duration(random_.AnySize(1, spec_.max_wait.count()));
    }
    return action;
  }

  Action SettleOne() {
    const auto which = random_.Between(0, static_cast<std::int64_t>(open_.size()) - 1);
    settling_ = open_[static_cast<std::size_t>(which)];
    open_.erase(open_.begin() + which);
    if (!settling_.reserved) return {.verb = Verb::kUnbook, .cost = 0, .of = settling_.number};
    const std::int64_t cost =
        random_.OneOf<std::int64_t>({0, settling_.cost, random_.Between(0, settling_.cost),
                                     std::min(kMaxCount, settling_.cost + 3)});
    return {.verb = Verb::kSettle, .cost = cost, .of = settling_.number};
  }

  std::int64_t RandomCost() {
    const std::int64_t capacity = spec_.burst == 0 ? spec_.count : spec_.burst;
    switch (random_.Weighted({5, 45, 15, 10, 8, 6, 4, 7})) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return random_.Between(1, 5);
      case 3:
        return std::max<std::int64_t>(1, last_.remaining);
      case 4:
        return std::min(kMaxCount, last_.remaining + 1);
      case 5:
        return capacity;
      case 6:
        return std::min(kMaxCount, capacity + 1);
      default:
        return random_.Between(1, capacity);
    }
  }

  std::optional<std::string> Step(const Action& action) {
    Group group;
    std::array<Decision, 1> decisions;
    std::array<Receipt, 1> receipts{};
    Charge charge{.rule = "rule",
                  .key = key_,
                  .hash = store_.Hash(key_),
                  .limit = &*limit_,
                  .cost = action.cost,
                  .wait = action.wait};
    const bool reserves = action.verb == Verb::kCheck && random_.Chance(40);
    const LimitInForce in_force{.rule = store_.Hash("rule"), .name = "rule", .limit = &*limit_};
    if (action.verb == Verb::kSettle) {
      group.action = action.cost == 0 ? weir::Action::kCancel : weir::Action::kCommit;
      group.reservation = settling_.reservation;
      group.cost = action.cost;
      group.in_force = {&in_force, 1};
    } else {
      charge.verb = StepVerb(action.verb);
      if (action.verb == Verb::kUnbook) {
        charge.reserved = settling_.receipt.charged;
        charge.receipt = settling_.receipt.at;
      }
      group = {.action = reserves ? weir::Action::kReserve : weir::Action::kDecide,
               .charges = {&charge, 1},
               .decisions = decisions,
               .ttl = kYear,
               .receipts = receipts};
    }
    store_.Decide({&group, 1});
    if (group.error) {
      // A reservation may be gone, if the clock was moved past its time.
      const bool gone = action.verb == Verb::kSettle && group.error->code == ErrorCode::kNotFound;
      if (!gone) return "#" + std::to_string(action.number) + ": " + group.error->message;
      return std::nullopt;
    }
    return Compare(action, group, receipts[0], reserves);
  }

  std::optional<std::string> Compare(const Action& action, const Group& group,
                                     const Receipt& receipt, bool reserves) {
    at_ = group.decided_at;
    if (oracle_ == nullptr) oracle_ = MakeOracle(spec_, AsOf(at_), 1);
    const Decision expected = oracle_->Do(action, AsOf(at_));
    history_ += "  #" + std::to_string(action.number) + " at " +
                std::to_string(at_.time_since_epoch().count()) + " verb " +
                std::to_string(static_cast<int>(action.verb)) + " cost " +
                std::to_string(action.cost) + " wait " + std::to_string(action.wait.count()) +
                " of " + std::to_string(action.of) + (expected.allowed ? " ok\n" : " denied\n");
    if (action.verb == Verb::kSettle) return std::nullopt;  // Its answer is in what follows.
    last_ = group.decision;
    if (auto difference = Difference(expected, group.decision)) return difference;
    if (action.verb == Verb::kCheck && expected.allowed && action.cost > 0) {
      open_.push_back({action.number, action.cost, group.reservation, receipt,
                       reserves || group.reservation != ReservationId::kNone});
      if (open_.size() > 20) open_.erase(open_.begin());
    }
    return std::nullopt;
  }

  StoreOnServers& store_;
  ServersClock& clock_;
  Random random_;
  const Family family_;
  LimitSpec spec_;
  std::optional<Limit> limit_;
  std::string key_;
  std::unique_ptr<Oracle> oracle_;
  WallTime at_{};
  Decision last_{};
  std::vector<Open> open_;
  Open settling_{};
  std::string history_;
};

class RedisStoreOracle : public testing::TestWithParam<Family> {
 protected:
  static void SetUpTestSuite() {
    const auto settings = on_servers::SettingsFromEnvironment();
    if (settings) store_ = new StoreOnServers(*settings);
  }
  static void TearDownTestSuite() {
    delete store_;
    store_ = nullptr;
  }

  static StoreOnServers* store_;
};
StoreOnServers* RedisStoreOracle::store_ = nullptr;

TEST_P(RedisStoreOracle, AgreesWithRealServersAtEveryStep) {
  ASSERT_NE(store_, nullptr) << "WEIR_TEST_SERVERS names no servers";
  ASSERT_TRUE(store_->AwaitConnection());
  static const std::uint64_t seed = FromEnvironment("WEIR_SEED", std::random_device{}());
  std::printf("WEIR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const std::uint64_t steps = FromEnvironment("WEIR_STEPS", 8'000);
  ServersClock& clock = store_->clock();
  const std::uint64_t family_seed = Derive(seed, static_cast<std::uint64_t>(GetParam()));
  constexpr int kStepsOfOne = 150;
  for (std::uint64_t i = 0; i * kStepsOfOne < steps; ++i) {
    Duel duel(*store_, clock, GetParam(), Derive(family_seed, i));
    ASSERT_EQ(duel.Run(kStepsOfOne), std::nullopt);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, RedisStoreOracle, testing::ValuesIn(kEveryFamily),
                         [](const auto& family) { return std::string(NameOf(family.param)); });

}  // namespace
}  // namespace weir::conformance
