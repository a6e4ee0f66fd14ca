#include "store/redis/error_reply.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(ErrorReply, IsKnownByItsFirstWordWhateverAScriptAdds) {
  const ErrorReply oom = ReadErrorReply(
      "OOM command not allowed when used memory > 'maxmemory'. script: 8a3f, on @user_script:1.");
  EXPECT_EQ(oom.fault, StoreFault::kNoMemory);
  EXPECT_EQ(oom.remedy, Remedy::kNone);
  EXPECT_EQ(ReadErrorReply("OOMPH nothing we know").fault, StoreFault::kOther);
  EXPECT_EQ(ReadErrorReply("").fault, StoreFault::kOther);
}

TEST(ErrorReply, IsKnownByTheWordOfTheCommandWhereverAScriptHasIt) {
  const auto within = [](const std::string& error) {
    return ReadErrorReply(
        "ERR Error running script (call to f_2fe91b0d): @user_script:1: @user_script: 1: " + error);
  };
  EXPECT_EQ(within("-OOM command not allowed when used memory > 'maxmemory'.").fault,
            StoreFault::kNoMemory);
  EXPECT_EQ(within("-READONLY You can't write against a read only replica.").remedy,
            Remedy::kRediscover);
  EXPECT_EQ(within("-NOREPLICAS Not enough good replicas to write.").fault,
            StoreFault::kNotWritable);
  EXPECT_EQ(within("The user executing the script can't run this command or subcommand").fault,
            StoreFault::kCredentials);
  EXPECT_EQ(within("WRONGTYPE Operation against a key").fault, StoreFault::kOther);
}

TEST(ErrorReply, SaysWhatHelps) {
  EXPECT_EQ(ReadErrorReply("NOSCRIPT No matching script.").remedy, Remedy::kSendText);
  EXPECT_EQ(ReadErrorReply("TRYAGAIN Multiple keys").remedy, Remedy::kTryAgain);
  EXPECT_EQ(ReadErrorReply("READONLY You can't write").remedy, Remedy::kRediscover);
  for (const char* hopeless : {"LOADING x", "MASTERDOWN x", "BUSY x", "MISCONF x", "NOREPLICAS x",
                               "NOAUTH x", "WRONGPASS x", "NOPERM x", "CLUSTERDOWN x"}) {
    EXPECT_EQ(ReadErrorReply(hopeless).remedy, Remedy::kNone) << hopeless;
    EXPECT_NE(ReadErrorReply(hopeless).fault, StoreFault::kOther) << hopeless;
  }
}

TEST(ErrorReply, PointsElsewhere) {
  const ErrorReply moved = ReadErrorReply("MOVED 3999 127.0.0.1:6381");
  EXPECT_EQ(moved.remedy, Remedy::kGoThere);
  EXPECT_EQ(moved.slot, 3999);
  EXPECT_EQ(moved.site.ToString(), "127.0.0.1:6381");
  const ErrorReply ask = ReadErrorReply("ASK 16383 ::1:7000");
  EXPECT_EQ(ask.remedy, Remedy::kAskThere);
  EXPECT_EQ(ask.site.host, "::1");
  EXPECT_EQ(ask.site.port, 7000);
}

TEST(ErrorReply, PointsToTheSameHostOrToNobodyKnowsWhere) {
  EXPECT_EQ(ReadErrorReply("MOVED 1 :6381").site.host, "");
  EXPECT_EQ(ReadErrorReply("MOVED 1 :6381").site.port, 6381);
  EXPECT_EQ(ReadErrorReply("MOVED 1 ?:6381").site.port, 0);
}

TEST(ErrorReply, PointingNowhereIsNonsense) {
  for (const char* text :
       {"MOVED", "MOVED 1", "MOVED x 127.0.0.1:1", "MOVED 16384 127.0.0.1:1", "MOVED 1 127.0.0.1",
        "MOVED 1 127.0.0.1:65536", "MOVED -1 a:1", "ASK 1 127.0.0.1:", "ASK  127.0.0.1:1"}) {
    const ErrorReply reply = ReadErrorReply(text);
    EXPECT_EQ(reply.remedy, Remedy::kNone) << text;
    EXPECT_EQ(reply.fault, StoreFault::kProtocol) << text;
  }
}

TEST(ErrorReply, IsShortForPeople) {
  EXPECT_EQ(Readable("ERR no. script: abc, on @user_script:1."), "ERR no.");
  EXPECT_EQ(Readable(std::string(1000, 'x')).size(), 160U);
}

}  // namespace
}  // namespace weir::redis
