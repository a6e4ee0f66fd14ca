#include "store/redis/server_check.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

std::string Info(std::string_view version, std::string_view policy, std::string_view more) {
  std::string info = "# Server\r\nredis_version:";
  info.append(version).append("\r\nrun_id:abc\r\n# Memory\r\nmaxmemory_policy:").append(policy);
  return info.append("\r\n").append(more);
}

bool Says(const std::vector<ServerNotice>& notices, std::string_view subject,
          std::string_view text) {
  return std::ranges::any_of(notices, [&](const ServerNotice& notice) {
    return notice.subject == subject && notice.text.find(text) != std::string::npos;
  });
}

TEST(ServerCheck, HasNothingToSayAboutAServerThatIsSetUpWell) {
  const ServerFacts facts =
      ReadServerFacts(Info("7.0.15", "noeviction",
                           "aof_enabled:1\r\nrole:master\r\nconnected_slaves:1\r\n"
                           "min_slaves_good_slaves:1\r\n"));
  EXPECT_EQ(facts.run, "abc");
  EXPECT_FALSE(IsTooOld(facts));
  EXPECT_TRUE(CheckServer(facts).empty());
}

TEST(ServerCheck, KnowsWhatTimeItIsThereIfItIsToldAndIfThatMakesSense) {
  const auto time_of = [](std::string_view text) {
    return ReadServerFacts("server_time_usec:" + std::string(text) + "\r\n").time;
  };
  EXPECT_EQ(time_of("1735689600000001"), WallTime(std::chrono::microseconds(1735689600000001)));
  EXPECT_FALSE(ReadServerFacts(Info("6.2.0", "noeviction", "")).time);
  for (const char* const text :
       {"", "0", "-5", "12x", "99999999999999999999", "9007199254740993"}) {
    EXPECT_FALSE(time_of(text)) << text;
  }
}

TEST(ServerCheck, SaysWhatEvictionCosts) {
  const auto notices =
      CheckServer(ReadServerFacts(Info("7.0.15", "allkeys-lru", "aof_enabled:1\r\n")));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_TRUE(Says(notices, "eviction", "allkeys-lru"));
  EXPECT_TRUE(Says(notices, "eviction", "WARNING"));
  EXPECT_TRUE(Says(notices, "eviction", "another full burst"));
}

TEST(ServerCheck, NamesAVersionThatIsTooOld) {
  for (const char* old : {"5.0.14", "6.0.16", "6.1.9", "2.8"}) {
    const ServerFacts facts = ReadServerFacts(Info(old, "noeviction", ""));
    EXPECT_TRUE(IsTooOld(facts)) << old;
    EXPECT_TRUE(Says(CheckServer(facts), "version", old)) << old;
  }
  for (const char* good : {"6.2.0", "6.2", "6.10.1", "7.0.15", "7.2.4", "10.0.0", ""}) {
    EXPECT_FALSE(IsTooOld(ReadServerFacts(Info(good, "noeviction", "")))) << good;
  }
}

TEST(ServerCheck, SaysWhatARestartAndAFailoverCost) {
  const auto notices = CheckServer(
      ReadServerFacts(Info("7.0.15", "noeviction", "aof_enabled:0\r\nconnected_slaves:2\r\n")));
  EXPECT_TRUE(Says(notices, "persistence", "one more burst"));
  EXPECT_TRUE(Says(notices, "replicas", "min-replicas-to-write"));
}

TEST(ServerCheck, SaysSoftlyThatItWasNotAllowedToLook) {
  const auto notices = CheckServer(ReadServerFacts(""));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].text.find("WARNING"), std::string::npos);
}

}  // namespace
}  // namespace weir::redis
