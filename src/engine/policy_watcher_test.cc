// threads
#include <weir/policy_watcher.h>

#include <fcntl.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "engine/file_watch.h"
#include "engine/policy_files_under_test.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using Outcome = ReloadEvent::Outcome;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// The events of a watcher, in their order.
class Events {
 public:
  void Add(const ReloadEvent& event) {
    const std::scoped_lock lock(mutex_);
    events_.push_back(event);
    added_.notify_all();
  }
  // Waits for the next one. None if it does not come in a long time.
  std::optional<ReloadEvent> Next() {
    std::unique_lock lock(mutex_);
    if (!added_.wait_for(lock, seconds(60), [&] { return !events_.empty(); })) return std::nullopt;
    ReloadEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  // Passes over others: who writes slowly may be seen in between.
  std::optional<ReloadEvent> NextApplied() {
    while (auto event = Next()) {
      if (event->outcome == Outcome::kApplied) return event;
    }
    return std::nullopt;
  }
  bool empty() {
    const std::scoped_lock lock(mutex_);
    return events_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<ReloadEvent> events_;
};

// Watches weir.yaml of the folder. Only told, never by looking from time to time, unless it is said
// how often.
class Watched {
 public:
  explicit Watched(const PolicyFolder& folder, Duration poll = hours(1))
      : under_test(*Policy::Load(folder.File("weir.yaml")).policy) {
    WatchOptions options;
    options.on_event = [this](const ReloadEvent& event) { events.Add(event); };
    options.quiet = milliseconds(5);
    options.poll = poll;
    watcher = *PolicyWatcher::Start(under_test.engine, folder.File("weir.yaml"), options);
  }
  std::string Limit() const { return under_test.engine.policy().spec().rules.at(0).limit; }

  Events events;
  EngineUnderTest under_test;
  std::unique_ptr<PolicyWatcher> watcher;
};

class PolicyWatcherTest : public testing::Test {
 protected:
  PolicyWatcherTest() { folder_.Write("weir.yaml", RuleNamed("r", "10/min")); }
  PolicyFolder folder_;
};

TEST_F(PolicyWatcherTest, TakesAFileThatIsRenamedOverTheOldOne) {
  Watched watched(folder_);
  for (const char* limit : {"20/min", "30/min", "40/min"}) {
    folder_.Replace("weir.yaml", RuleNamed("r", limit));
    ASSERT_TRUE(watched.events.NextApplied());
    EXPECT_EQ(watched.Limit(), limit);
  }
}

TEST_F(PolicyWatcherTest, TakesAFileThatIsWrittenInPieces) {
  Watched watched(folder_);
  const std::string text = RuleNamed("r", "77/min");
  const int file = open(folder_.File("weir.yaml").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  ASSERT_GE(file, 0);
  for (const char c : text) ASSERT_EQ(write(file, &c, 1), 1);
  close(file);
  ASSERT_TRUE(watched.events.NextApplied());
  EXPECT_EQ(watched.Limit(), "77/min");
}

TEST_F(PolicyWatcherTest, TakesAFileThatIsReachedThroughLinksAsInKubernetes) {
  const auto make_version = [&](const std::string& name, std::string_view limit) {
    fs::create_directory(folder_.path() / name);
    folder_.Write(name + "/weir.yaml", RuleNamed("r", limit));
  };
  make_version("..2025_1", "10/min");
  make_version("..2025_2", "20/min");
  fs::create_directory_symlink("..2025_1", folder_.path() / "..data");
  folder_.Remove("weir.yaml");
  fs::create_symlink("..data/weir.yaml", folder_.path() / "weir.yaml");
  Watched watched(folder_);
  EXPECT_EQ(watched.Limit(), "10/min");
  for (const char* number : {"2", "1", "2"}) {
    fs::create_directory_symlink("..2025_" + std::string(number), folder_.path() / "..data_tmp");
    fs::rename(folder_.path() / "..data_tmp", folder_.path() / "..data");
    ASSERT_TRUE(watched.events.NextApplied());
    EXPECT_EQ(watched.Limit(), std::string(number) + "0/min");
  }
}

TEST_F(PolicyWatcherTest, KeepsThePolicyWhileTheFileIsGoneAndTakesItWhenItIsBack) {
  Watched watched(folder_);
  folder_.Remove("weir.yaml");
  const auto gone = watched.events.Next();
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->outcome, Outcome::kBroken);
  EXPECT_EQ(watched.Limit(), "10/min");
  folder_.Replace("weir.yaml", RuleNamed("r", "20/min"));
  ASSERT_TRUE(watched.events.NextApplied());
  EXPECT_EQ(watched.Limit(), "20/min");
}

TEST_F(PolicyWatcherTest, TellsOfABrokenFileAndOfOneThatLooksLikeAnAccident) {
  Watched watched(folder_);
  folder_.Replace("weir.yaml", "rules: [");
  EXPECT_EQ(watched.events.Next()->outcome, Outcome::kBroken);
  folder_.Replace("weir.yaml", "rules: []\n");
  EXPECT_EQ(watched.events.Next()->outcome, Outcome::kSuspicious);
  EXPECT_EQ(watched.Limit(), "10/min");
}

TEST_F(PolicyWatcherTest, SaysNothingWhenAFileBecomesWhatItWas) {
  Watched watched(folder_);
  folder_.Replace("weir.yaml", RuleNamed("r", "10/min"));
  folder_.Write("unrelated.txt", "x");
  EXPECT_EQ(watched.watcher->Reload().outcome, Outcome::kUnchanged);
  EXPECT_EQ(watched.events.Next()->outcome, Outcome::kUnchanged);  // Of the one just asked for.
  folder_.Replace("weir.yaml", RuleNamed("r", "20/min"));
  EXPECT_EQ(watched.events.Next()->outcome, Outcome::kApplied);
  EXPECT_EQ(watched.under_test.engine.Stats().version, 2U);
}

TEST_F(PolicyWatcherTest, TakesAFileOfOverridesThatChangesAlone) {
  constexpr std::string_view kOverrides =
      "rules:\n  - { name: r, key: user, limit: 10/min, overrides: more/customers.csv }\n";
  fs::create_directory(folder_.path() / "more");
  folder_.Write("more/customers.csv", "user,limit\nacme,50/min\n");
  Watched watched(folder_);
  folder_.Replace("weir.yaml", kOverrides);
  ASSERT_TRUE(watched.events.NextApplied());
  EXPECT_EQ(watched.under_test.Peek({.user = "acme"}).limit, 50);
  for (int i = 60; i < 65; ++i) {
    folder_.Replace("more/customers.csv", "user,limit\nacme," + std::to_string(i) + "/min\n");
    ASSERT_TRUE(watched.events.NextApplied());
    EXPECT_EQ(watched.under_test.Peek({.user = "acme"}).limit, i);
  }
}

TEST_F(PolicyWatcherTest, LooksFromTimeToTimeThoughNobodyTellsIt) {
  Watched watched(folder_, milliseconds(5));
  // What is written through a descriptor that stays open makes no event.
  const std::string text = RuleNamed("r", "88/min");
  const int file = open(folder_.File("weir.yaml").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_TRUE(watched.events.NextApplied());
  EXPECT_EQ(watched.Limit(), "88/min");
  close(file);
}

TEST_F(PolicyWatcherTest, ReloadsAtOnceWhenItIsAsked) {
  Watched watched(folder_);
  folder_.Replace("weir.yaml", RuleNamed("r", "20/min"));
  watched.watcher->Reload();
  EXPECT_EQ(watched.Limit(), "20/min");
}

TEST_F(PolicyWatcherTest, EndsWhileItWaitsAndRightAfterItsStart) {
  for (int i = 0; i < 20; ++i) {
    Watched watched(folder_);
    if (i % 2 == 0) folder_.Replace("weir.yaml", RuleNamed("r", std::to_string(i + 10) + "/min"));
  }
}

TEST(FileWatch, KnowsTheFolderOfAFileAndOfEveryLinkOnTheWay) {
  const PolicyFolder folder;
  const std::string at = fs::canonical(folder.path()).string();
  fs::create_directory(at + "/a");
  fs::create_directory(at + "/b");
  folder.Write("b/file", "x");
  fs::create_directory_symlink("../b", at + "/a/link");
  fs::create_symlink("a/link/file", at + "/file");
  const std::set<std::string> folders = FoldersOf({at + "/file"});
  std::set<std::string> real;
  for (const std::string& path : folders) real.insert(fs::canonical(path).string());
  EXPECT_THAT(real, UnorderedElementsAre(at, at + "/a", at + "/b"));
  EXPECT_THAT(FoldersOf({at + "/no/such"}), ElementsAre(at + "/no"));
  fs::create_symlink("loop", at + "/loop");
  EXPECT_FALSE(FoldersOf({at + "/loop"}).empty());
}

}  // namespace
}  // namespace weir
