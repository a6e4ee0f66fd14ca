#include "server/snapshot_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::HasSubstr;

class SnapshotFile : public testing::Test {
 protected:
  SnapshotFile() {
    std::string name = testing::TempDir() + "weir-snapshot.XXXXXX";
    folder_ = mkdtemp(name.data());
    WritePolicy("memory: { snapshot: state }\nrules:\n  - { name: x, key: ip, limit: 3/h }\n");
  }
  ~SnapshotFile() override { std::filesystem::remove_all(folder_); }

  void WritePolicy(std::string_view text) {
    std::ofstream(folder_ / "weir.yaml") << text;
    policy_ = Policy::Load((folder_ / "weir.yaml").string()).policy;
  }
  std::string path() const { return (folder_ / "state").string(); }
  static std::string Text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  void Save() {
    Result<Engine> engine = Engine::Make(*policy_);
    for (int i = 0; i < 3; ++i) engine->Check({.ip = "203.0.113.9"});
    ASSERT_TRUE(SaveSnapshot(*engine, path()));
  }
  std::string WhyNotLoaded() {
    const auto loaded = LoadSnapshot(path(), *policy_, {});
    return loaded ? "" : loaded.error().message;
  }

  std::filesystem::path folder_;
  std::optional<Policy> policy_;
};

TEST_F(SnapshotFile, IsBesideThePolicyUnlessItSaysMore) {
  EXPECT_EQ(SnapshotPath(*policy_), path());
  WritePolicy("memory: { snapshot: /var/lib/weir/state }\nrules: []\n");
  EXPECT_EQ(SnapshotPath(*policy_), "/var/lib/weir/state");
  WritePolicy("rules: []\n");
  EXPECT_EQ(SnapshotPath(*policy_), "");
  WritePolicy("store: redis://127.0.0.1:1\nmemory: { snapshot: state }\nrules: []\n");
  EXPECT_EQ(SnapshotPath(*policy_), "");
}

TEST_F(SnapshotFile, IsReadBack) {
  EXPECT_FALSE(LoadSnapshot(path(), *policy_, {}).value().has_value());
  Save();
  auto loaded = LoadSnapshot(path(), *policy_, {});
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ((*loaded)->loaded.report.keys, 1);
  EXPECT_FALSE((*loaded)->seen_by_others);
  EXPECT_FALSE((*loaded)->loaded.engine.Check({.ip = "203.0.113.9"}).decision.allowed);
}

TEST_F(SnapshotFile, IsForItsOwnerAlone) {
  const mode_t before = umask(0);
  Save();
  umask(before);
  struct stat status{};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600);
  chmod(path().c_str(), 0640);
  EXPECT_TRUE(LoadSnapshot(path(), *policy_, {}).value()->seen_by_others);
}

TEST_F(SnapshotFile, IsNotBelievedIfOthersCouldHaveWrittenIt) {
  Save();
  chmod(path().c_str(), 0620);
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("written by others"));
  chmod(path().c_str(), 0602);
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("written by others"));
  if (geteuid() == 0) {
    chmod(path().c_str(), 0600);
    ASSERT_EQ(chown(path().c_str(), 12'345, 0), 0);
    EXPECT_THAT(WhyNotLoaded(), HasSubstr("belongs to user 12345"));
  }
}

// A look at the service of another user, by root, must cost that user nothing.
TEST_F(SnapshotFile, OfWhoeverOwnsTheFolderIsTakenUpAndLeftByRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  ASSERT_EQ(chown(folder_.c_str(), 12'345, 0), 0);
  Save();
  struct stat status{};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12'345U);
  EXPECT_EQ(WhyNotLoaded(), "");
  ASSERT_EQ(chown(path().c_str(), 12'346, 0), 0);
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("belongs to user 12346"));
}

TEST_F(SnapshotFile, IsNeverALinkAFolderOrAPipe) {
  std::filesystem::create_symlink("weir.yaml", path());
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("symbolic link"));
  std::filesystem::remove(path());
  std::filesystem::create_symlink("nothing", path());
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("symbolic link"));
  std::filesystem::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("no regular file"));
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("is a folder"));
  EXPECT_FALSE(SetSnapshotAside(path()));
  EXPECT_TRUE(std::filesystem::is_directory(path()));
}

TEST_F(SnapshotFile, StaysAsItWasWhenItCannotBeReplaced) {
  Save();
  const std::string before = Text(path());
  // In the way of the file that is written first.
  std::filesystem::create_directories(path() + ".new/x");
  Result<Engine> engine = Engine::Make(*policy_);
  EXPECT_FALSE(SaveSnapshot(*engine, path()));
  EXPECT_EQ(Text(path()), before);
  std::filesystem::remove_all(path() + ".new");
  // Left behind by one that was killed; nothing of a link that somebody put there is followed.
  std::filesystem::create_symlink("weir.yaml", path() + ".new");
  EXPECT_TRUE(SaveSnapshot(*engine, path()));
  EXPECT_THAT(Text((folder_ / "weir.yaml").string()), HasSubstr("rules:"));
  EXPECT_NE(Text(path()), before);
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
}

TEST_F(SnapshotFile, IsSetAside) {
  std::ofstream(path()) << "nonsense";
  EXPECT_THAT(WhyNotLoaded(), HasSubstr("it is no snapshot"));
  EXPECT_EQ(SetSnapshotAside(path()), path() + ".bad");
  EXPECT_EQ(Text(path() + ".bad"), "nonsense");
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(SnapshotFile, IsSetAsideBesideThoseBeforeItButNotForEver) {
  for (const char* suffix : {".bad", ".bad.2", ".bad.3", ".bad.4", ".bad.5"}) {
    std::ofstream(path()) << "nonsense" << suffix;
    EXPECT_EQ(SetSnapshotAside(path()), path() + suffix);
  }
  std::ofstream(path()) << "one more";
  const Result<std::string> aside = SetSnapshotAside(path());
  ASSERT_FALSE(aside);
  EXPECT_THAT(aside.error().message, HasSubstr("stays where it is"));
  EXPECT_EQ(Text(path()), "one more");
  for (const char* suffix : {".bad", ".bad.2", ".bad.3", ".bad.4", ".bad.5"}) {
    EXPECT_EQ(Text(path() + suffix), std::string("nonsense") + suffix);
  }
  // A place that has become free is used, also where a link leads nowhere.
  std::filesystem::remove(path() + ".bad.3");
  std::filesystem::remove(path() + ".bad");
  std::filesystem::create_symlink("nothing", path() + ".bad");
  EXPECT_EQ(SetSnapshotAside(path()), path() + ".bad.3");
}

TEST_F(SnapshotFile, SaysWhetherItIsWrongOrOnlyOutOfReach) {
  std::ofstream(path()) << "nonsense";
  EXPECT_EQ(LoadSnapshot(path(), *policy_, {}).error().code, ErrorCode::kInvalidArgument);
  chmod(path().c_str(), 0666);
  EXPECT_EQ(LoadSnapshot(path(), *policy_, {}).error().code, ErrorCode::kInvalidArgument);
  // A regular file of this user that can be opened, and whose first bytes cannot be read.
  const auto unread = LoadSnapshot("/proc/self/mem", *policy_, {});
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().code, ErrorCode::kInternal);
  EXPECT_EQ(unread.error().message, "/proc/self/mem: cannot be read: Input/output error");
  const auto nowhere = LoadSnapshot((folder_ / "weir.yaml" / "state").string(), *policy_, {});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kInternal);
}

TEST_F(SnapshotFile, CanBeCheckedBeforeTheServiceStarts) {
  EXPECT_TRUE(CheckSnapshot(*policy_));
  Save();
  EXPECT_TRUE(CheckSnapshot(*policy_));
  std::ofstream(path()) << "nonsense";
  EXPECT_FALSE(CheckSnapshot(*policy_));
  EXPECT_EQ(Text(path()), "nonsense");
  WritePolicy("memory: { snapshot: nowhere/state }\nrules: []\n");
  const Result<void> nowhere = CheckSnapshot(*policy_);
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("no file can be made beside it"));
}

}  // namespace
}  // namespace weir
