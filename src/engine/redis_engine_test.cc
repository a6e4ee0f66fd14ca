// The engine on a real Redis, and on none.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// A server on a unix socket in a folder of its own, so that it needs no port.
class RedisServer {
 public:
  explicit RedisServer(std::string folder) : folder_(std::move(folder)) {}
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() { Stop(); }

  void Start() {
    pid_ = fork();
    if (pid_ == 0) {
      const int null = open("/dev/null", O_WRONLY);  // NOLINT
      dup2(null, STDOUT_FILENO);
      const std::string socket = path();
      execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket.c_str(), "--dir",
             folder_.c_str(), "--save", "", "--requirepass", "s3cret", nullptr);
      _exit(127);
    }
  }
  void Stop() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
    std::filesystem::remove(path());
  }
  std::string path() const { return folder_ + "/redis.sock"; }

 private:
  const std::string folder_;
  pid_t pid_ = 0;
};

class RedisEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::system("redis-server --version > /dev/null 2>&1"), 0)  // NOLINT
        << "install redis-server";
    std::string folder = (std::filesystem::temp_directory_path() / "weirXXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    server_ = std::make_unique<RedisServer>(folder);
    std::ofstream(folder + "/password") << "s3cret\n";
  }
  void TearDown() override {
    server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // With more time than a busy machine needs: none of these tests is about a store that is slow.
  std::string Store(std::string_view rules, std::string_view login = "") const {
    const std::string by_file = ":file:" + folder_ + "/password@";
    return "store: 'redis+unix://" + (login.empty() ? by_file : std::string(login)) +
           server_->path() + "'\nredis: { timeout: 2s, connect_timeout: 2s }\n" +
           std::string(rules);
  }
  Result<Engine> Make(const std::string& yaml) {
    return Engine::Make(PolicyOf(yaml), {.on_notice = [this](std::string_view text) {
                          const std::scoped_lock lock(mutex_);
                          notices_ += std::string(text) + "\n";
                        }});
  }
  // Asks until the shared store answers; false if it does not within some seconds.
  static bool AwaitStore(Engine& engine, const Request& request = {.user = "nobody"}) {
    for (int i = 0; i < 500; ++i) {
      if (engine.Peek(request).decision.source == Source::kStore) return true;
      std::this_thread::sleep_for(milliseconds(20));  // The server is another process.
    }
    return false;
  }
  std::string notices() {
    const std::scoped_lock lock(mutex_);
    return notices_;
  }

  std::string folder_;
  std::unique_ptr<RedisServer> server_;
  std::mutex mutex_;
  std::string notices_;
};

constexpr std::string_view kRules = R"(
rules:
  - { name: per-user, key: user, limit: 20/h }
  - { name: log, key: user, limit: 30/h, algorithm: sliding_log, mode: shadow }
)";

TEST_F(RedisEngineTest, SharesLimitsBetweenEnginesAndThreads) {
  server_->Start();
  std::vector<Engine> engines;
  for (int i = 0; i < 3; ++i) {
    Result<Engine> engine = Make(Store(kRules));
    ASSERT_TRUE(engine) << engine.error().message;
    engines.push_back(*std::move(engine));
  }
  for (Engine& engine : engines) ASSERT_TRUE(AwaitStore(engine));
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (Engine& engine : engines) {
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i) {
          admitted += engine.Check({.user = "ann"}).decision.allowed ? 1 : 0;
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 20);
  // It is well again once nothing has failed for a while.
  for (int i = 0; i < 500 && engines[0].Health().degraded; ++i) {
    engines[0].Peek({.user = "ann"});
    std::this_thread::sleep_for(milliseconds(10));
  }
  const StoreHealth health = engines[0].Health();
  EXPECT_TRUE(health.shared);
  EXPECT_FALSE(health.degraded);
  ASSERT_EQ(health.servers.size(), 1U);
  EXPECT_THAT(health.servers[0].name, Not(HasSubstr("s3cret")));
  EXPECT_FALSE(health.servers[0].breaker_open);
}

TEST_F(RedisEngineTest, HasAllVerbs) {
  server_->Start();
  Result<Engine> made = Make(Store(kRules));
  ASSERT_TRUE(made);
  Engine& engine = *made;
  ASSERT_TRUE(AwaitStore(engine));
  const Request ann{.user = "ann"};
  EXPECT_EQ(engine.Check(ann, {.cost = 5}).decision.remaining, 15);
  engine.Refund(ann, {.cost = 2});
  EXPECT_EQ(engine.Peek(ann, {.cost = 0}).decision.remaining, 17);
  engine.Penalize(ann, {.cost = 17});
  EXPECT_EQ(engine.Check(ann).decision.reason, Reason::kLimited);
  engine.Reset(ann);
  const Answer reserved = engine.Reserve(ann, {.cost = 10});
  ASSERT_NE(reserved.decision.reservation, ReservationId::kNone);
  const Result<Decision> committed = engine.Commit(reserved.decision.reservation, 4);
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_FALSE(engine.Commit(reserved.decision.reservation, 4).has_value());
  EXPECT_EQ(engine.Check(ann).decision.remaining, 15);
  std::array<BatchRequest, 3> batch;
  for (BatchRequest& item : batch) item.request = ann;
  engine.CheckBatch(batch, SystemClock::Shared().Read());
  EXPECT_EQ(batch[2].answer.decision.remaining, 12);
  const Limit limit = *Limit::Parse("2/h");
  std::array<LimitRequest, 3> limited;
  for (LimitRequest& item : limited) item = {.key = "k", .limit = &limit};
  engine.CheckLimits(limited, SystemClock::Shared().Read());
  EXPECT_TRUE(limited[1].decision.allowed);
  EXPECT_FALSE(limited[2].decision.allowed);
}

TEST_F(RedisEngineTest, WaitsBansAndGivesPlacesBack) {
  server_->Start();
  Result<Engine> made = Make(Store(R"(
rules:
  - { name: bucket, key: user, match: { path: /b }, limit: 20/s burst 1 }
  - { name: places, key: user, match: { path: /p }, limit: 1 concurrent }
  - name: login
    key: user
    match: { path: /l }
    limit: 1/min
    block: { after: 2 denials in 10min, for: 5min }
)"));
  ASSERT_TRUE(made) << made.error().message;
  Engine& engine = *made;
  ASSERT_TRUE(AwaitStore(engine, {.user = "w", .path = "/l"}));
  const Request login{.user = "ann", .path = "/l"};
  EXPECT_TRUE(engine.Check(login).decision.allowed);
  EXPECT_EQ(engine.Check(login).decision.reason, Reason::kLimited);
  EXPECT_EQ(engine.Check(login).decision.reason, Reason::kBanned);
  EXPECT_EQ(engine.Check(login).decision.reason, Reason::kBanned);

  const Answer place = engine.Check({.user = "ann", .path = "/p"});
  ASSERT_TRUE(place.decision.allowed);
  std::counting_semaphore<> told{0};
  std::atomic<int> allowed{0};
  const auto done = [&](const Answer& answer, std::span<const RuleDecision>) {
    allowed += answer.decision.allowed ? 1 : 0;
    told.release();
  };
  engine.CheckThen({.user = "ann", .path = "/p"}, {}, seconds(20), done);
  const Result<Decision> released = engine.Release(place.decision.reservation);
  EXPECT_TRUE(released) << released.error().message;
  for (int i = 0; i < 4; ++i)
    engine.CheckThen({.user = "ann", .path = "/b"}, {}, seconds(20), done);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(told.try_acquire_for(seconds(30))) << i;
  EXPECT_EQ(allowed, 5);
}

TEST_F(RedisEngineTest, StartsWithoutTheStoreAndHeals) {
  Result<Engine> made = Make(Store("fleet_size: 2\n" + std::string(kRules)));
  ASSERT_TRUE(made) << made.error().message;
  Engine& engine = *made;
  const Decision decision = engine.Check({.user = "ann"}).decision;
  EXPECT_EQ(decision.source, Source::kFallback);
  EXPECT_EQ(decision.limit, 10);  // Half of it.
  EXPECT_TRUE(engine.Health().degraded);
  server_->Start();
  EXPECT_TRUE(AwaitStore(engine));
  EXPECT_EQ(engine.Check({.user = "ann"}).decision.limit, 20);
  EXPECT_THAT(notices(), Not(HasSubstr("s3cret")));
  server_->Stop();
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(engine.Check({.user = "b" + std::to_string(i)}).decision.allowed);
  EXPECT_TRUE(engine.Health().degraded);
}

TEST_F(RedisEngineTest, NamesASecretThatIsNotThere) {
  const Result<Engine> made = Make(Store(kRules, ":env:WEIR_TEST_NO_SUCH_VARIABLE@"));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("WEIR_TEST_NO_SUCH_VARIABLE"));
  EXPECT_THAT(made.error().message, HasSubstr("store: redis+unix://"));
}

TEST_F(RedisEngineTest, SaysThatAPasswordIsWrong) {
  server_->Start();
  Result<Engine> made = Make(Store(kRules, ":wrong-s3cret@"));
  ASSERT_TRUE(made);
  for (int i = 0; i < 300 && notices().find("WRONGPASS") == std::string::npos; ++i) {
    EXPECT_NE(made->Check({.user = "ann"}).decision.source, Source::kStore);
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_THAT(notices(), HasSubstr("WRONGPASS"));
  EXPECT_THAT(notices(), Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace weir
