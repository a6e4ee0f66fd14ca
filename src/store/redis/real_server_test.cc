// Through real servers, started here: alone, divided, in a cluster, behind sentinels.
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/limit.h>

#include "store/redis/servers_under_test.h"
#include "store/redis/shared_limit_under_test.h"
#include "store/redis/slots.h"

namespace weir::redis {
namespace {

using std::chrono::milliseconds;

// One charge under one limit.
struct Question {
  explicit Question(StoreOnThread& store, std::string key_, const Limit& limit,
                    std::string_view rule = "r")
      : key(std::move(key_)) {
    charge.rule = rule;
    charge.key = key;
    charge.hash = store.Hash(key);
    charge.limit = &limit;
    group.charges = {&charge, 1};
    group.decisions = {&decision, 1};
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  std::string key;
  Charge charge;
  Decision decision;
  Group group;
};

Group AskOne(StoreOnThread& store, std::string_view key, const Limit& limit) {
  Question question(store, std::string(key), limit);
  store.Ask({&question.group, 1});
  Group group = question.group;
  group.charges = {};
  group.decisions = {};
  return group;
}

// How many of `count` on one key, asked `together` at a time, were allowed; -1 if one failed.
int CountAllowed(StoreOnThread& store, const std::string& key, const Limit& limit, int count,
                 int together) {
  int allowed = 0;
  for (int done = 0; done < count; done += together) {
    std::vector<Charge> charges(static_cast<std::size_t>(together));
    std::vector<Decision> decisions(charges.size());
    std::vector<Group> groups(charges.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      charges[i].rule = "r";
      charges[i].key = key;
      charges[i].hash = store.Hash(key);
      charges[i].limit = &limit;
      groups[i].charges = {&charges[i], 1};
      groups[i].decisions = {&decisions[i], 1};
    }
    store.Ask(groups);
    for (const Group& group : groups) {
      if (group.error) {
        ADD_FAILURE() << group.error->message;
        return -1;
      }
      if (group.decision.allowed) ++allowed;
    }
  }
  return allowed;
}

Settings SettingsFor(const Server& server) {
  Settings settings;
  settings.sites.push_back({.endpoint = server.endpoint()});
  settings.timeout = milliseconds(250);
  return settings;
}

bool Heals(StoreOnThread& store, std::string_view key, const Limit& limit) {
  return Eventually([&] { return !AskOne(store, key, limit).error; });
}

TEST(RealServer, CountsExactly) {
  Server server;
  StoreOnThread store(SettingsFor(server));
  const Limit limit = SharedLimit("100/day");
  EXPECT_EQ(CountAllowed(store, "ann", limit, 300, 50), 100);
  EXPECT_EQ(CountAllowed(store, "bob", limit, 300, 1), 100);
}

TEST(RealServer, IsSharedByThreads) {
  Server server;
  StoreOnThread one(SettingsFor(server));
  StoreOnThread two(SettingsFor(server));
  const Limit limit = SharedLimit("1000/day");
  int first = 0;
  std::thread other([&] { first = CountAllowed(one, "ann", limit, 1'000, 20); });
  const int second = CountAllowed(two, "ann", limit, 1'000, 20);
  other.join();
  EXPECT_EQ(first + second, 1'000);
}

// What month it is, is for the server to say.
TEST(RealServer, IsAskedAboutTheSameCalendarWindowsByMachinesThatAreSetToOtherMonths) {
  const Server server;
  StoreOnThread right(SettingsFor(server));
  StoreOnThread behind(SettingsFor(server), -std::chrono::days(100));
  StoreOnThread ahead(SettingsFor(server), std::chrono::days(100));
  const Limit limit = *Limit::Make({.algorithm = Algorithm::kFixedWindow,
                                    .count = 10,
                                    .align = Align::kCalendar,
                                    .calendar = CalendarPeriod::kMonth})
                           ->ForSharedStore();
  // The value says where the window ends.
  const auto agree = [&](const std::string& attempt) {
    EXPECT_TRUE(AskOne(right, "right" + attempt, limit).decision.allowed);
    EXPECT_TRUE(AskOne(behind, "behind" + attempt, limit).decision.allowed);
    EXPECT_TRUE(AskOne(ahead, "ahead" + attempt, limit).decision.allowed);
    const auto value = [&](const std::string& name) {
      return server.Ask({"GET", "weir1:{" + name + attempt + "}:r:d"});
    };
    return value("right").size() > 10 && value("right") == value("behind") &&
           value("right") == value("ahead");
  };
  // Between the questions a month may end, but not twice.
  EXPECT_TRUE(agree("1") || agree("2")) << server.Ask({"KEYS", "*"});
}

TEST(RealServer, MayForgetTheScriptAtAnyTime) {
  Server server;
  StoreOnThread store(SettingsFor(server));
  std::atomic<bool> stop{false};
  std::thread flusher([&] {
    while (!stop.load()) {
      server.Ask({"SCRIPT", "FLUSH"});
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  const Limit limit = SharedLimit("1000/day");
  EXPECT_EQ(CountAllowed(store, "ann", limit, 20'000, 100), 1'000);
  stop = true;
  flusher.join();
}

TEST(RealServer, ThatIsKilledFailsCallsAtOnceAndHealsWhenItIsBack) {
  Server server;
  StoreOnThread store(SettingsFor(server));
  const Limit limit = SharedLimit("1000/day");
  ASSERT_FALSE(AskOne(store, "ann", limit).error);
  server.Stop(SIGKILL);
  for (int i = 0; i < 50; ++i) {
    Question question(store, "ann", limit);
    EXPECT_LT(store.Ask({&question.group, 1}), milliseconds(350));
    EXPECT_TRUE(question.group.error);
  }
  server.Start();
  const auto begin = SystemClock().Read().steady;
  EXPECT_TRUE(Heals(store, "ann", limit));
  EXPECT_LT(SystemClock().Read().steady - begin, milliseconds(2'100));
}

TEST(RealServer, ThatHangsIsAnsweredForInTimeAndIsNotAskedForLong) {
  Server server;
  Settings settings = SettingsFor(server);
  settings.timeout = milliseconds(50);
  StoreOnThread store(settings);
  const Limit limit = SharedLimit("100000/day");
  ASSERT_FALSE(AskOne(store, "ann", limit).error);
  server.Signal(SIGSTOP);
  for (int i = 0; i < 10; ++i) {
    Question question(store, "ann", limit);
    EXPECT_LT(store.Ask({&question.group, 1}), milliseconds(150));
    EXPECT_TRUE(question.group.error);
  }
  EXPECT_GT(store.Faults(StoreFault::kBreaker), 0U) << "the breaker is not open";
  server.Signal(SIGCONT);
  EXPECT_TRUE(Heals(store, "ann", limit));
}

TEST(RealServer, LateRepliesAreSwallowed) {
  Server server;
  Settings settings = SettingsFor(server);
  settings.timeout = milliseconds(100);
  StoreOnThread store(settings);
  const Limit limit = SharedLimit("10/day");
  ASSERT_FALSE(AskOne(store, "ann", limit).error);
  server.Signal(SIGSTOP);
  Question late(store, "bob", limit);
  store.Ask({&late.group, 1});
  ASSERT_TRUE(late.group.error);
  EXPECT_EQ(late.group.error->code, ErrorCode::kDeadline);
  server.Signal(SIGCONT);
  ASSERT_TRUE(Heals(store, "carol", limit));
  // It took effect once, and was not repeated.
  EXPECT_EQ(CountAllowed(store, "bob", limit, 20, 1), 9);
}

TEST(RealServer, WantsTheRightPassword) {
  Server server({"--requirepass", "sesame"});
  Settings settings = SettingsFor(server);
  const Limit limit = SharedLimit("10/day");
  {
    StoreOnThread store(settings);
    EXPECT_TRUE(AskOne(store, "ann", limit).error);
    EXPECT_TRUE(Eventually([&] { return store.Heard("NOAUTH"); }));
  }
  settings.sites[0].credentials.password = "wrong-secret";
  {
    StoreOnThread store(settings);
    EXPECT_TRUE(AskOne(store, "ann", limit).error);
    EXPECT_TRUE(Eventually([&] { return store.Heard("WRONGPASS"); }));
    EXPECT_FALSE(store.Heard("wrong-secret"));
    EXPECT_GT(store.Faults(StoreFault::kCredentials), 0U);
  }
  settings.sites[0].credentials.password = "sesame";
  StoreOnThread store(settings);
  EXPECT_EQ(CountAllowed(store, "ann", limit, 20, 5), 10);
}

// The least that is enough, as the documentation says it.
const std::vector<std::string> kLeastRights = {"ACL",       "SETUSER",
                                               "weir",      "on",
                                               ">sesame",   "resetkeys",
                                               "~weir1:*",  "-@all",
                                               "+evalsha",  "+eval",
                                               "+time",     "+get",
                                               "+mget",     "+set",
                                               "+del",      "+strlen",
                                               "+getrange", "+setrange",
                                               "+pexpire",  "+zadd",
                                               "+zcard",    "+zremrangebyscore"};

TEST(RealServer, NeedsFewRightsAndNamesTheOneThatIsMissing) {
  Server server;
  ASSERT_EQ(server.Ask(kLeastRights), "+OK\r\n");
  Settings settings = SettingsFor(server);
  settings.sites[0].credentials = {.user = "weir", .password = "sesame"};
  const Limit limit = SharedLimit("10/day");
  {
    StoreOnThread store(settings);
    for (const Algorithm algorithm :
         {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindow,
          Algorithm::kSlidingLog, Algorithm::kConcurrency}) {
      LimitSpec spec{.algorithm = algorithm, .count = 10};
      if (algorithm != Algorithm::kConcurrency) spec.period = std::chrono::hours(24);
      const Limit any = *Limit::Make(spec)->ForSharedStore();
      EXPECT_EQ(CountAllowed(store, "ann", any, 20, 5), 10) << store.heard();
    }
    EXPECT_EQ(store.Beat("a").value_or(-1), 1);
    EXPECT_TRUE(store.Heard("INFO is not allowed"));
    EXPECT_FALSE(store.Heard("missing rights"));
  }
  for (const char* right : {"get", "set"}) {
    server.Ask(kLeastRights);
    server.Ask({"ACL", "SETUSER", "weir", std::string("-") + right});
    StoreOnThread store(settings);
    EXPECT_TRUE(Eventually([&] { return store.Heard("missing rights"); })) << "before any call";
    EXPECT_TRUE(AskOne(store, "bob", limit).error) << right;
    EXPECT_GT(store.Faults(StoreFault::kCredentials), 0U);
    EXPECT_EQ(store.heard().find("sesame"), std::string::npos);
  }
}

TEST(RealServer, ThatBecomesAReplicaIsLeftAndFoundAgain) {
  Server master;
  Server server;
  StoreOnThread store(SettingsFor(server));
  const Limit limit = SharedLimit("1000/day");
  ASSERT_FALSE(AskOne(store, "ann", limit).error);
  server.Ask({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(AskOne(store, "ann", limit).error);
  EXPECT_GT(store.Faults(StoreFault::kReadOnly) + store.Faults(StoreFault::kLoading), 0U);
  server.Ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(Heals(store, "ann", limit));
}

TEST(RealServer, ThatIsFullIsAFailure) {
  Server server({"--maxmemory", "2mb"});
  StoreOnThread store(SettingsFor(server));
  const Limit limit = SharedLimit("10/day");
  ASSERT_TRUE(Heals(store, "ann", limit));
  server.Ask({"CONFIG", "SET", "maxmemory", "1"});
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(AskOne(store, "bob", limit).error);
  EXPECT_GT(store.Faults(StoreFault::kNoMemory), 0U);
  // Probes write, so it does not look healthy. Nothing else is sent any more.
  const auto refused = [&] {
    const std::string text = server.Ask({"INFO", "errorstats"});
    constexpr std::string_view kCount = "errorstat_OOM:count=";
    const std::size_t at = text.find(kCount);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + kCount.size()));
  };
  const int before = refused();
  EXPECT_TRUE(Eventually([&] { return refused() >= before + 2; }));
  EXPECT_TRUE(AskOne(store, "bob", limit).error);
  server.Ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(Heals(store, "bob", limit));
}

TEST(RealServer, SaysWhatPeopleShouldKnow) {
  Server server({"--maxmemory-policy", "allkeys-lru"});
  StoreOnThread store(SettingsFor(server));
  const Limit limit = SharedLimit("10/day");
  ASSERT_FALSE(AskOne(store, "ann", limit).error);
  EXPECT_TRUE(store.Heard("WARNING: maxmemory-policy is allkeys-lru"));
  EXPECT_TRUE(store.Heard("appendonly is off"));
}

TEST(RealServer, CountsItsFleet) {
  Server server;
  StoreOnThread store(SettingsFor(server));
  EXPECT_EQ(store.Beat("a").value_or(-1), 1);
  EXPECT_EQ(store.Beat("b").value_or(-1), 2);
  EXPECT_EQ(store.Beat("a").value_or(-1), 2);
  EXPECT_NE(server.Ask({"PTTL", "weir1:{~fleet}:members"}), ":-1\r\n");
  server.Stop(SIGKILL);
  EXPECT_FALSE(store.Beat("a"));
}

TEST(RealServers, DivideKeysWhateverTheirOrder) {
  Server servers[3];
  Settings settings = SettingsFor(servers[0]);
  settings.sites = {{.endpoint = servers[0].endpoint()},
                    {.endpoint = servers[1].endpoint()},
                    {.endpoint = servers[2].endpoint()}};
  Settings shuffled = settings;
  std::ranges::reverse(shuffled.sites);
  StoreOnThread one(settings);
  StoreOnThread two(shuffled);
  const Limit limit = SharedLimit("10/day");
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key" + std::to_string(i);
    EXPECT_EQ(CountAllowed(one, key, limit, 6, 6), 6) << key;
    EXPECT_EQ(CountAllowed(two, key, limit, 6, 6), 4) << key;
  }
  for (const Server& server : servers) EXPECT_NE(server.Ask({"DBSIZE"}), ":0\r\n");
}

// Three masters, each with a replica.
class RealCluster : public testing::Test {
 protected:
  RealCluster() {
    for (int i = 0; i < 6; ++i) {
      servers_.push_back(std::make_unique<Server>(std::vector<std::string>{
          "--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
          "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0"}));
    }
    std::string command = "redis-cli --cluster create";
    for (const auto& server : servers_) command += " " + server->endpoint().ToString();
    command += " --cluster-replicas 1 --cluster-yes > /dev/null 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    for (const auto& server : servers_) {
      EXPECT_TRUE(Eventually([&] {
        return server->Ask({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
      }));
    }
    settings_.layout = Layout::kCluster;
    settings_.timeout = milliseconds(250);
    settings_.sites.push_back({.endpoint = servers_[0]->endpoint()});
    settings_.sites.push_back({.endpoint = servers_[1]->endpoint()});
  }

  // How many times a server logged that it takes the cluster for down.
  int TimesDown() const {
    int times = 0;
    for (const auto& server : servers_) {
      std::ifstream log(server->folder() / "log");
      for (std::string line; std::getline(log, line);) {
        if (line.contains("Cluster state changed: fail")) ++times;
      }
    }
    return times;
  }

  // Makes a replica take over from its master while it asks the store; returns how many calls
  // failed with which message.
  std::map<std::string, int> ErrorsDuringFailover(StoreOnThread& store, const Limit& limit) const {
    const auto follows = [](const auto& server) {
      const std::string role = server->Ask({"ROLE"});
      return role.contains("slave") && role.contains("connected");
    };
    auto replica = servers_.end();
    EXPECT_TRUE(Eventually([&] {
      replica = std::ranges::find_if(servers_, follows);
      return replica != servers_.end();
    }));
    // A server gives up after five seconds; then it needs another command.
    SteadyTime commanded{};
    const auto command = [&] {
      commanded = SystemClock().Read().steady;
      EXPECT_EQ((*replica)->Ask({"CLUSTER", "FAILOVER"}), "+OK\r\n");
    };
    command();
    std::map<std::string, int> errors;
    const auto ask_all = [&] {
      for (int i = 0; i < 100; ++i) {
        const auto error = AskOne(store, "key" + std::to_string(i), limit).error;
        if (error) ++errors[error->message];
      }
    };
    EXPECT_TRUE(Eventually([&] {
      ask_all();
      if ((*replica)->Ask({"ROLE"}).contains("master")) return true;
      if (SystemClock().Read().steady - commanded > std::chrono::seconds(6)) command();
      return false;
    }));
    for (int i = 0; i < 10; ++i) ask_all();
    return errors;
  }

  std::vector<std::unique_ptr<Server>> servers_;
  Settings settings_;
};

TEST_F(RealCluster, CountsExactlyInEverySlot) {
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("10/day");
  for (int i = 0; i < 50; ++i) {
    const std::string key = "key" + std::to_string(i);
    EXPECT_EQ(CountAllowed(store, key, limit, 20, 10), 10) << key;
  }
}

TEST_F(RealCluster, LosesOnlyTheSlotsOfAMasterThatDiesAndThoseForAShortTime) {
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("100000/day");
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(Heals(store, "key" + std::to_string(i), limit));
  }
  servers_[0]->Stop(SIGKILL);
  int failed = 0;
  for (int i = 0; i < 30; ++i) {
    if (AskOne(store, "key" + std::to_string(i), limit).error) ++failed;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 25);
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(Heals(store, "key" + std::to_string(i), limit)) << i;
  }
}

TEST_F(RealCluster, FollowsAManualFailoverWithoutAVisibleError) {
  // Until the replica takes over, the old master makes its clients wait: for as long as the servers
  // need, and for at most 10 s.
  settings_.timeout = std::chrono::seconds(12);
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("100000/day");
  ASSERT_TRUE(Heals(store, "warm", limit));
  // A master that hears from the old master before it hears from the new one takes the slots for
  // lost, and answers CLUSTERDOWN until the new master's next message. That failover does not show
  // what the store does; another one will.
  for (int i = 0; i < 5; ++i) {
    const int times_down = TimesDown();
    const std::map<std::string, int> errors = ErrorsDuringFailover(store, limit);
    if (TimesDown() == times_down) {
      EXPECT_THAT(errors, testing::IsEmpty());
      return;
    }
    for (int key = 0; key < 100; ++key) {
      EXPECT_TRUE(Heals(store, "key" + std::to_string(key), limit)) << key;
    }
  }
  FAIL() << "a server declared the cluster down in every failover";
}

TEST_F(RealCluster, CountsOnWhileASlotMoves) {
  StoreOnThread store(settings_);
  const Limit limit = SharedLimit("40/day");
  EXPECT_EQ(CountAllowed(store, "mover", limit, 10, 5), 10);
  const std::string slot = std::to_string(SlotOfTag("mover"));
  const Server* from = nullptr;
  const Server* to = nullptr;
  for (const auto& server : servers_) {
    if (server->Ask({"ROLE"}).find("master") == std::string::npos) continue;
    const bool has_it = server->Ask({"CLUSTER", "COUNTKEYSINSLOT", slot}) != ":0\r\n";
    (has_it ? from : to) = server.get();
  }
  ASSERT_TRUE(from != nullptr && to != nullptr);
  const std::string from_id = from->Ask({"CLUSTER", "MYID"}).substr(5, 40);
  const std::string to_id = to->Ask({"CLUSTER", "MYID"}).substr(5, 40);
  ASSERT_EQ(to->Ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", from_id}), "+OK\r\n");
  ASSERT_EQ(from->Ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", to_id}), "+OK\r\n");
  EXPECT_EQ(CountAllowed(store, "mover", limit, 10, 5), 10);
  const std::string keys = from->Ask({"CLUSTER", "GETKEYSINSLOT", slot, "10"});
  const std::string key = "weir1:{mover}:r:t";
  EXPECT_NE(keys.find(key), std::string::npos) << keys;
  EXPECT_EQ(from->Ask({"MIGRATE", "127.0.0.1", std::to_string(to->port()), key, "0", "1000"}),
            "+OK\r\n");
  // Now it is asked for there, call by call.
  EXPECT_EQ(CountAllowed(store, "mover", limit, 10, 5), 10);
  for (const Server* server : {to, from}) server->Ask({"CLUSTER", "SETSLOT", slot, "NODE", to_id});
  EXPECT_EQ(CountAllowed(store, "mover", limit, 20, 5), 10);
}

TEST(RealSentinel, FollowsTheMaster) {
  Server master({"--repl-diskless-sync-delay", "0"});
  Server replica({"--replicaof", "127.0.0.1 " + std::to_string(master.port()),
                  "--repl-diskless-sync-delay", "0"});
  ASSERT_TRUE(Eventually([&] {
    return master.Ask({"INFO", "replication"}).find("state=online") != std::string::npos;
  }));
  std::vector<std::unique_ptr<ScratchFolder>> folders;
  std::vector<std::unique_ptr<Server>> sentinels;
  Settings settings;
  settings.layout = Layout::kSentinel;
  settings.master_name = "limits";
  settings.timeout = milliseconds(250);
  for (int i = 0; i < 3; ++i) {
    folders.push_back(std::make_unique<ScratchFolder>());
    const std::string file = (folders.back()->path() / "sentinel.conf").string();
    std::ofstream(file) << "sentinel monitor limits 127.0.0.1 " << master.port() << " 2\n"
                        << "sentinel down-after-milliseconds limits 500\n"
                        << "sentinel failover-timeout limits 3000\n";
    sentinels.push_back(std::make_unique<Server>(std::vector<std::string>{file, "--sentinel"}));
    settings.sites.push_back({.endpoint = sentinels.back()->endpoint()});
  }
  for (const auto& sentinel : sentinels) {
    ASSERT_TRUE(Eventually([&] {
      return sentinel->Ask({"SENTINEL", "CKQUORUM", "limits"}).starts_with("+OK 3") &&
             sentinel->Ask({"SENTINEL", "REPLICAS", "limits"}).size() > 10;
    }));
  }
  StoreOnThread store(settings);
  const Limit limit = SharedLimit("100/day");
  ASSERT_TRUE(Heals(store, "ann", limit));
  EXPECT_EQ(CountAllowed(store, "bob", limit, 150, 10), 100);
  master.Stop(SIGKILL);
  EXPECT_TRUE(AskOne(store, "ann", limit).error);
  EXPECT_TRUE(Heals(store, "ann", limit));
  EXPECT_EQ(replica.Ask({"ROLE"}).substr(0, 14), "*3\r\n$6\r\nmaster");
}

}  // namespace
}  // namespace weir::redis
