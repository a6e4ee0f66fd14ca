#include "server/kept_state.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// While there is one, nothing in the folder can be opened, not even by root.
class OutOfReach {
 public:
  explicit OutOfReach(const std::filesystem::path& folder)
      : folder_(folder), away_(folder.string() + ".away") {
    std::filesystem::rename(folder_, away_);
    std::ofstream(folder_.string()) << "no folder";
  }
  OutOfReach(const OutOfReach&) = delete;
  OutOfReach& operator=(const OutOfReach&) = delete;
  ~OutOfReach() {
    std::filesystem::remove(folder_);
    std::filesystem::rename(away_, folder_);
  }

 private:
  const std::filesystem::path folder_;
  const std::filesystem::path away_;
};

// A service after the other, with the same file between them.
class KeptStateTest : public testing::Test {
 protected:
  KeptStateTest() {
    std::string name = testing::TempDir() + "weir-kept.XXXXXX";
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ / "weir.yaml")
        << "memory: { snapshot: kept/state }\nrules:\n  - { name: x, key: ip, limit: 3/h }\n";
    std::filesystem::create_directory(folder_ / "kept");
    policy_ = Policy::Load((folder_ / "weir.yaml").string()).policy;
  }
  ~KeptStateTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "kept/state").string(); }
  static std::string Text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  // What is left of three for whom it is about, once one more was used.
  static std::int64_t UseOne(Engine& engine) {
    return engine.Check({.ip = "203.0.113.9"}).decision.remaining;
  }
  template <typename Action>
  static std::string Said(const Action& action) {
    testing::internal::CaptureStderr();
    action();
    return testing::internal::GetCapturedStderr();
  }

  std::filesystem::path folder_;
  std::optional<Policy> policy_;
  Log log_;
};

TEST_F(KeptStateTest, GoesOnWhereTheOneBeforeEnded) {
  for (int left : {2, 1, 0}) {
    Said([&] {
      KeptState kept(*policy_, log_);
      Result<Engine> engine = kept.Resume({});
      EXPECT_EQ(UseOne(*engine), left);
      EXPECT_TRUE(kept.Keep(*engine));
    });
  }
}

TEST_F(KeptStateTest, SetsAsideWhatItReadAndCannotUse) {
  std::ofstream(path()) << "nonsense";
  std::ofstream(path() + ".bad") << "of long ago";
  KeptState kept(*policy_, log_);
  const std::string said = Said([&] {
    Result<Engine> engine = kept.Resume({});
    EXPECT_EQ(UseOne(*engine), 2);
  });
  EXPECT_THAT(said, AllOf(HasSubstr("it is no snapshot; begins with nothing"),
                          HasSubstr(path() + " is kept as " + path() + ".bad.2")));
  EXPECT_EQ(Text(path() + ".bad"), "of long ago");
  EXPECT_EQ(Text(path() + ".bad.2"), "nonsense");
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(KeptStateTest, LeavesWhatItCannotReadWhereItIsUntilItHasItsOwnToLeave) {
  Said([&] {
    KeptState kept(*policy_, log_);
    Result<Engine> engine = kept.Resume({});
    UseOne(*engine);
    EXPECT_TRUE(kept.Keep(*engine));
  });
  const std::string before = Text(path());

  KeptState kept(*policy_, log_);
  std::optional<Engine> engine;
  const std::string at_the_start = Said([&] {
    const OutOfReach out_of_reach(folder_ / "kept");
    engine = *kept.Resume({});
  });
  EXPECT_THAT(at_the_start,
              AllOf(HasSubstr("cannot be opened: Not a directory; begins with nothing, and the "
                              "file stays where it is"),
                    Not(HasSubstr("is kept as"))));
  EXPECT_EQ(Text(path()), before);
  EXPECT_FALSE(std::filesystem::exists(path() + ".bad"));

  // It can be read by now, but this service never did.
  EXPECT_EQ(UseOne(*engine), 2);
  const std::string at_the_end = Said([&] { EXPECT_TRUE(kept.Keep(*engine)); });
  EXPECT_THAT(at_the_end, HasSubstr(path() + " is kept as " + path() + ".bad"));
  EXPECT_EQ(Text(path() + ".bad"), before);
  EXPECT_NE(Text(path()), before);
}

TEST_F(KeptStateTest, LeavesItWhereThePolicyInForceSays) {
  std::ofstream(folder_ / "other.yaml")
      << "memory: { snapshot: elsewhere }\nrules:\n  - { name: x, key: ip, limit: 3/h }\n";
  const Policy other = *Policy::Load((folder_ / "other.yaml").string()).policy;
  const std::string elsewhere = (folder_ / "elsewhere").string();
  std::ofstream(elsewhere) << "of somebody else";
  const std::string said = Said([&] {
    KeptState kept(*policy_, log_);
    Result<Engine> engine = kept.Resume({});
    kept.Apply(other);
    EXPECT_TRUE(kept.Keep(*engine));
  });
  EXPECT_THAT(said, AllOf(HasSubstr("will leave a snapshot"), HasSubstr("is kept as")));
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(Text(elsewhere + ".bad"), "of somebody else");
  EXPECT_NE(Text(elsewhere), "of somebody else");
  Said([&] {
    KeptState kept(other, log_);
    Result<Engine> engine = kept.Resume({});
    kept.Apply(*Policy::Parse("rules: []").policy);
    std::filesystem::remove(elsewhere);
    EXPECT_TRUE(kept.Keep(*engine));
  });
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

TEST_F(KeptStateTest, SaysNothingOfAFileThatWasTakenAwayMeanwhile) {
  std::ofstream(path()) << "whatever";
  KeptState kept(*policy_, log_);
  std::optional<Engine> engine;
  Said([&] {
    const OutOfReach out_of_reach(folder_ / "kept");
    engine = *kept.Resume({});
  });
  std::filesystem::remove(path());
  EXPECT_THAT(Said([&] { EXPECT_TRUE(kept.Keep(*engine)); }), Not(HasSubstr("aside")));
  EXPECT_TRUE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace weir
