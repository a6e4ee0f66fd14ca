// How many groups share a call, by how much there is to do: each leaves at once where the server
// has time, and many leave together where it has not.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "sim/lua_engine.h"
#include "sim/network.h"
#include "sim/redis_server.h"
#include "sim/sim_loop.h"
#include "sim/world.h"
#include "store/redis/redis_store.h"

namespace weir {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kSlowness = microseconds(200);

class SharedCalls : public testing::Test, private Completion {
 protected:
  SharedCalls() {
    server_.Start(sim::RedisServer::Data::kLost);
    server_.SetSlowness(kSlowness);
    world_.RunFor(milliseconds(20));
    (void)AskEvery(milliseconds(1), 5);  // It is connected, and the server knows the script.
  }

  struct Outcome {
    std::uint64_t calls = 0;
    Duration longest{0};
  };
  // So many groups, each in a turn of its own.
  Outcome AskEvery(Duration gap, int count) {
    const std::uint64_t before = server_.commands();
    for (int i = 0; i < count; ++i) {
      loop_.Post([this] { Ask(); });
      world_.RunFor(gap);
    }
    world_.RunFor(milliseconds(40));
    Outcome outcome{.calls = server_.commands() - before};
    for (const auto& asked : asked_) {
      EXPECT_TRUE(asked->is_over);
      EXPECT_FALSE(asked->group.error) << asked->group.error->message;
      outcome.longest = std::max(outcome.longest, asked->ended - asked->began);
    }
    asked_.clear();
    return outcome;
  }

  sim::World world_{1};
  sim::Network network_{world_};
  sim::LuaEngine engine_;
  sim::RedisServer server_{world_, network_, engine_, {.address = "10.0.0.1:6379"}};

 private:
  struct Asked {
    Group group{};
    Charge charge{};
    Decision decision{};
    std::string key;
    Duration began{};
    Duration ended{};
    bool is_over = false;
  };

  static redis::Settings MakeSettings() {
    redis::Settings settings;
    settings.sites = {{.endpoint = {.host = "10.0.0.1", .port = 6379}}};
    return settings;
  }

  void Ask() {
    Asked& asked = *asked_.emplace_back(std::make_unique<Asked>());
    asked.key = "user=" + std::to_string(asked_.size());
    asked.charge = {.rule = "r", .key = asked.key, .hash = hasher_(asked.key), .limit = &limit_};
    asked.group = {.charges = {&asked.charge, 1}, .decisions = {&asked.decision, 1}};
    asked.began = world_.elapsed();
    store_.Submit({&asked.group, 1}, loop_.now(), *this);
  }

  void OnDecided(Group& group) noexcept override {
    for (const auto& asked : asked_) {
      if (&asked->group != &group) continue;
      asked->is_over = true;
      asked->ended = world_.elapsed();
    }
  }

  const redis::Settings settings_ = MakeSettings();
  const Limit limit_ =
      *Limit::Make({.count = 100, .period = std::chrono::seconds(1)})->ForSharedStore();
  const KeyHasher hasher_{HashKind::kXxh3, 1};
  sim::SimLoop loop_{world_, &network_};
  redis::Commons commons_{settings_, {}};
  redis::RedisStore store_{loop_, settings_, hasher_, commons_};
  std::vector<std::unique_ptr<Asked>> asked_;
};

TEST_F(SharedCalls, NobodyWaitsForOthersWhileTheServerHasTime) {
  const Outcome outcome = AskEvery(milliseconds(1), 50);
  EXPECT_EQ(outcome.calls, 50);
  EXPECT_LT(outcome.longest, kSlowness + microseconds(301));
}

TEST_F(SharedCalls, GrowWithTheLoad) {
  // Ten and more come in the time of one call, of which a few are under way.
  const Outcome outcome = AskEvery(microseconds(20), 2'000);
  EXPECT_LT(outcome.calls, 400);
  EXPECT_LT(outcome.longest, milliseconds(3));
}

TEST_F(SharedCalls, LeaveThoughTheServerDoesNotAnswer) {
  // Longer than anything is held back: by the time the server goes on, it has them all.
  server_.Pause(milliseconds(10));
  const Outcome outcome = AskEvery(microseconds(20), 20);
  EXPECT_LT(outcome.calls, 10);
  EXPECT_LT(outcome.longest, milliseconds(10) + 6 * kSlowness + microseconds(301));
}

}  // namespace
}  // namespace weir
