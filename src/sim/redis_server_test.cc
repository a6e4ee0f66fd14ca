#include "sim/redis_server.h"

#include <string>

#include <gtest/gtest.h>

#include "sim/caller_under_test.h"
#include "sim/redis_cluster.h"
#include "store/redis/slots.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RedisServerTest : public testing::Test {
 protected:
  // The answer to one line, as it came.
  std::string Ask(CallerUnderTest& caller, const std::string& line) {
    (void)caller.stream->Write(line + "\r\n");
    world.RunFor(milliseconds(5));
    return caller.Take();
  }
  std::string Ask(const std::string& line) {
    if (caller_ == nullptr) {
      caller_ = std::make_unique<CallerUnderTest>(near, "10.0.0.1:6379");
      world.RunFor(milliseconds(5));
    }
    return Ask(*caller_, line);
  }

  World world{3};
  Network network{world};
  LuaEngine engine;
  SimLoop near{world, &network};
  RedisServer server{world, network, engine, {.address = "10.0.0.1:6379"}};
  std::unique_ptr<CallerUnderTest> caller_;
};

TEST_F(RedisServerTest, AnswersCommandsInOrder) {
  EXPECT_EQ(Ask("PING"), "+PONG\r\n");
  EXPECT_EQ(Ask("SET k v\r\nGET k"), "+OK\r\n$1\r\nv\r\n");
  EXPECT_EQ(Ask("EVAL 'return 7' 0"), ":7\r\n");
  EXPECT_NE(Ask("INFO").find("redis_version:7.0.15\r\n"), std::string::npos);
}

TEST_F(RedisServerTest, LetsInWhoKnowsThePassword) {
  RedisServer locked(world, network, engine, {.address = "10.0.0.2:1", .password = "secret"});
  CallerUnderTest caller(near, "10.0.0.2:1");
  world.RunFor(milliseconds(5));
  EXPECT_EQ(Ask(caller, "GET k"), "-NOAUTH Authentication required.\r\n");
  EXPECT_TRUE(Ask(caller, "AUTH wrong").starts_with("-WRONGPASS"));
  EXPECT_EQ(Ask(caller, "AUTH default secret"), "+OK\r\n");
  EXPECT_EQ(Ask(caller, "GET k"), "$-1\r\n");
  locked.SetRevoked(true);
  EXPECT_TRUE(Ask(caller, "GET k").starts_with("-NOAUTH"));
}

TEST_F(RedisServerTest, ForgetsDataOrKeepsItWhenItStartsAgain) {
  Ask("SET k v");
  server.Crash();
  world.RunFor(milliseconds(1));
  EXPECT_TRUE(caller_->is_broken);
  CallerUnderTest refused(near, "10.0.0.1:6379");
  world.RunFor(milliseconds(1));
  EXPECT_EQ(refused.connected, false);
  server.Start(RedisServer::Data::kKept);
  caller_ = nullptr;
  EXPECT_EQ(Ask("GET k"), "$1\r\nv\r\n");
  server.Crash();
  server.Start(RedisServer::Data::kLost);
  caller_ = nullptr;
  EXPECT_EQ(Ask("GET k"), "$-1\r\n");
}

TEST_F(RedisServerTest, AnswersLaterWhatItWasAskedWhilePausedOrSlow) {
  Ask("SET k v");
  server.Pause(seconds(1));
  EXPECT_EQ(Ask("GET k"), "");
  world.RunFor(seconds(1));
  EXPECT_EQ(caller_->Take(), "$1\r\nv\r\n");
  server.SetSlowness(milliseconds(20));
  EXPECT_EQ(Ask("GET k"), "");
  world.RunFor(milliseconds(20));
  EXPECT_EQ(caller_->Take(), "$1\r\nv\r\n");
}

TEST_F(RedisServerTest, SaysWhatIsWrongWithIt) {
  server.SetError("LOADING Redis is loading the dataset in memory");
  EXPECT_TRUE(Ask("GET k").starts_with("-LOADING"));
  server.SetError("");
  server.SetReadOnly(true);
  EXPECT_TRUE(Ask("SET k v").starts_with("-READONLY"));
  server.SetReadOnly(false);
  server.SetUnableToSave(true);
  EXPECT_TRUE(Ask("SET k v").starts_with("-MISCONF"));
  server.SetUnableToSave(false);
  server.SetOutOfMemory(true);
  EXPECT_TRUE(Ask("SET k v").starts_with("-OOM"));
  EXPECT_EQ(Ask("GET k"), "$-1\r\n");
}

TEST_F(RedisServerTest, TellsTheTimeOfItsOwnClock) {
  const std::string before = Ask("TIME");
  server.MoveClock(seconds(-3600));
  EXPECT_LT(Ask("TIME"), before);
}

TEST_F(RedisServerTest, SaysWhereAMasterIs) {
  RedisServer sentinel(world, network, engine, {.address = "10.0.0.3:26379"});
  sentinel.SetMaster("main", "10.0.0.1:6379");
  CallerUnderTest caller(near, "10.0.0.3:26379");
  world.RunFor(milliseconds(5));
  EXPECT_EQ(Ask(caller, "SENTINEL get-master-addr-by-name main"),
            "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n");
  EXPECT_EQ(Ask(caller, "SENTINEL get-master-addr-by-name other"), "*-1\r\n");
}

TEST_F(RedisServerTest, RedirectsToTheNodeThatHasTheSlot) {
  RedisServer second(world, network, engine, {.address = "10.0.0.2:6379"});
  RedisCluster cluster({&server, &second});
  CallerUnderTest other(near, "10.0.0.2:6379");
  world.RunFor(milliseconds(5));
  // Slot 3300 by the CRC16 of "b", 15495 by that of "a".
  ASSERT_EQ(redis::SlotOfKey("b"), 3300);
  ASSERT_EQ(redis::SlotOfKey("a"), 15495);
  EXPECT_EQ(Ask("SET b 1"), "+OK\r\n");
  EXPECT_EQ(Ask("SET a 1"), "-MOVED 15495 10.0.0.2:6379\r\n");
  EXPECT_EQ(Ask(other, "SET a 1"), "+OK\r\n");
  EXPECT_TRUE(Ask("EVAL 'return 1' 2 a b").starts_with("-CROSSSLOT"));

  cluster.BeginMove(3300, second);
  EXPECT_EQ(Ask("GET b"), "$1\r\n1\r\n");
  EXPECT_TRUE(Ask("EVAL 'return 1' 2 b {b}x").starts_with("-TRYAGAIN"));
  cluster.MoveKeys(1);
  EXPECT_EQ(Ask("GET b"), "-ASK 3300 10.0.0.2:6379\r\n");
  EXPECT_EQ(Ask(other, "GET b"), "-MOVED 3300 10.0.0.1:6379\r\n");
  EXPECT_EQ(Ask(other, "ASKING\r\nGET b"), "+OK\r\n$1\r\n1\r\n");
  cluster.EndMoves();
  EXPECT_EQ(Ask(other, "GET b"), "$1\r\n1\r\n");
  EXPECT_EQ(Ask("GET b"), "-MOVED 3300 10.0.0.2:6379\r\n");

  cluster.SetDown(true);
  EXPECT_TRUE(Ask(other, "GET b").starts_with("-CLUSTERDOWN"));
  EXPECT_TRUE(Ask("CLUSTER SLOTS").starts_with("*4\r\n*3\r\n:0\r\n:3299\r\n*3\r\n$8\r\n10.0.0.1"));
}

TEST_F(RedisServerTest, ForgetsSomeKeys) {
  for (const char* const key : {"a", "b", "c"}) Ask(std::string("SET ") + key + " 1");
  EXPECT_EQ(server.Evict(2, world.random()).size(), 2U);
  EXPECT_EQ(Ask("DBSIZE"), ":1\r\n");
}

}  // namespace
}  // namespace weir::sim
