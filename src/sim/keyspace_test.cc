#include "sim/keyspace.h"

#include <initializer_list>

#include <gtest/gtest.h>

#include "sim/numbers.h"

namespace weir::sim {
namespace {

class KeyspaceTest : public testing::Test {
 protected:
  KeyspaceTest() { keyspace.SetTime(ServerTime(1'000'000'000)); }

  Reply Do(std::initializer_list<std::string_view> words) {
    return keyspace.Execute(Words(words.begin(), words.size()));
  }
  void Pass(std::chrono::milliseconds time) { keyspace.SetTime(keyspace.server_time() + time); }

  Keyspace keyspace;
};

using std::chrono::milliseconds;

TEST_F(KeyspaceTest, KeepsWhatWasSetUntilItExpires) {
  EXPECT_EQ(Do({"SET", "k", "v", "PX", "10"}), Reply::Ok());
  Pass(milliseconds(9));
  EXPECT_EQ(Do({"GET", "k"}), Reply::Bulk("v"));
  EXPECT_EQ(Do({"PTTL", "k"}), Reply::Integer(1));
  Pass(milliseconds(1));
  EXPECT_EQ(Do({"GET", "k"}), Reply::Nil());
  EXPECT_EQ(Do({"PTTL", "k"}), Reply::Integer(-2));
  EXPECT_TRUE(keyspace.Keys().empty());
}

TEST_F(KeyspaceTest, RefusesAnExpiryOfNothing) {
  EXPECT_EQ(Do({"SET", "k", "v", "PX", "0"}),
            Reply::Error("ERR invalid expire time in 'set' command"));
  EXPECT_EQ(Do({"SET", "k", "v", "PX", "12.5"}), Reply::Error(kNotAnInteger));
  EXPECT_EQ(Do({"SET", "k", "v", "PX"}), Reply::Error(kSyntaxError));
  EXPECT_EQ(Do({"EXISTS", "k"}), Reply::Integer(0));
}

TEST_F(KeyspaceTest, DropsAKeyWhoseExpiryIsSetToNow) {
  Do({"SET", "k", "v"});
  EXPECT_EQ(Do({"PEXPIRE", "k", "0"}), Reply::Integer(1));
  EXPECT_EQ(Do({"EXISTS", "k"}), Reply::Integer(0));
  EXPECT_EQ(Do({"PEXPIRE", "k", "5"}), Reply::Integer(0));
  EXPECT_EQ(Do({"PEXPIRE", "k", "9223372036854775807"}),
            Reply::Error("ERR invalid expire time in 'pexpire' command"));
}

TEST_F(KeyspaceTest, SetForgetsTheExpiryUnlessToldToKeepIt) {
  Do({"SET", "k", "v", "PX", "10"});
  Do({"SET", "k", "w", "KEEPTTL"});
  EXPECT_EQ(Do({"PTTL", "k"}), Reply::Integer(10));
  Do({"SET", "k", "w"});
  EXPECT_EQ(Do({"PTTL", "k"}), Reply::Integer(-1));
}

TEST_F(KeyspaceTest, SetsOnlyWhatIsThereOrIsNot) {
  EXPECT_EQ(Do({"SET", "k", "v", "XX"}), Reply::Nil());
  EXPECT_EQ(Do({"SET", "k", "v", "NX"}), Reply::Ok());
  EXPECT_EQ(Do({"SET", "k", "w", "NX"}), Reply::Nil());
  EXPECT_EQ(Do({"SET", "k", "w", "GET"}), Reply::Bulk("v"));
}

TEST_F(KeyspaceTest, SaysThatAValueIsOfTheWrongKind) {
  Do({"LPUSH", "list", "a"});
  for (const std::string_view command : {"GET", "STRLEN", "INCR", "ZCARD", "HLEN"}) {
    EXPECT_EQ(Do({command, "list"}), Reply::Error(kWrongType)) << command;
  }
  EXPECT_EQ(Do({"TYPE", "list"}), Reply::Status("list"));
  EXPECT_EQ(Do({"MGET", "list", "none"}), Reply::Array({Reply::Nil(), Reply::Nil()}));
  EXPECT_EQ(Do({"SET", "list", "v"}), Reply::Ok());
}

TEST_F(KeyspaceTest, ReadsAndWritesPartsOfStrings) {
  EXPECT_EQ(Do({"SETRANGE", "k", "2", "ab"}), Reply::Integer(4));
  EXPECT_EQ(Do({"GET", "k"}), Reply::Bulk(std::string("\0\0ab", 4)));
  EXPECT_EQ(Do({"GETRANGE", "k", "-2", "-1"}), Reply::Bulk("ab"));
  EXPECT_EQ(Do({"GETRANGE", "k", "3", "99"}), Reply::Bulk("b"));
  EXPECT_EQ(Do({"GETRANGE", "k", "3", "2"}), Reply::Bulk(""));
  EXPECT_EQ(Do({"SETRANGE", "k", "-1", "x"}), Reply::Error("ERR offset is out of range"));
  EXPECT_EQ(Do({"APPEND", "k", "c"}), Reply::Integer(5));
}

TEST_F(KeyspaceTest, CountsInWholeNumbersOfSixtyFourBits) {
  EXPECT_EQ(Do({"INCRBY", "k", "9223372036854775807"}), Reply::Integer(INT64_MAX));
  EXPECT_EQ(Do({"INCR", "k"}), Reply::Error("ERR increment or decrement would overflow"));
  EXPECT_EQ(Do({"INCRBY", "k", "1.5"}), Reply::Error(kNotAnInteger));
  Do({"SET", "k", " 1"});
  EXPECT_EQ(Do({"INCR", "k"}), Reply::Error(kNotAnInteger));
}

TEST_F(KeyspaceTest, KeepsTheExpiryOfWhatItChanges) {
  Do({"SET", "k", "1", "PX", "10"});
  Do({"INCR", "k"});
  Do({"APPEND", "k", "0"});
  EXPECT_EQ(Do({"PTTL", "k"}), Reply::Integer(10));
}

TEST_F(KeyspaceTest, OrdersSortedSetsByScore) {
  EXPECT_EQ(Do({"ZADD", "z", "2", "b", "1", "a", "3.5", "c"}), Reply::Integer(3));
  EXPECT_EQ(Do({"ZADD", "z", "XX", "9", "d"}), Reply::Integer(0));
  EXPECT_EQ(ToText(Do({"ZRANGE", "z", "0", "-1", "WITHSCORES"})),
            R"(["a", "1", "b", "2", "c", "3.5"])");
  EXPECT_EQ(ToText(Do({"ZRANGEBYSCORE", "z", "(1", "+inf", "LIMIT", "0", "1"})), R"(["b"])");
  EXPECT_EQ(Do({"ZCOUNT", "z", "1", "(3.5"}), Reply::Integer(2));
  EXPECT_EQ(Do({"ZREMRANGEBYSCORE", "z", "-inf", "2"}), Reply::Integer(2));
  EXPECT_EQ(Do({"ZSCORE", "z", "c"}), Reply::Bulk("3.5"));
  EXPECT_EQ(Do({"ZREM", "z", "c"}), Reply::Integer(1));
  EXPECT_EQ(Do({"EXISTS", "z"}), Reply::Integer(0));
  EXPECT_EQ(Do({"ZADD", "z", "nan", "a"}), Reply::Error(kNotAFloat));
  EXPECT_EQ(Do({"ZCOUNT", "z", "x", "1"}), Reply::Error("ERR min or max is not a float"));
}

TEST_F(KeyspaceTest, TellsTheTimeInTwoTexts) {
  keyspace.SetTime(ServerTime(1'735'689'600'000'042));
  EXPECT_EQ(ToText(Do({"TIME"})), R"(["1735689600", "42"])");
}

TEST_F(KeyspaceTest, CountsTheWordsOfACommand) {
  EXPECT_EQ(Do({"GET"}), Reply::Error("ERR wrong number of arguments for 'get' command"));
  EXPECT_EQ(Do({"NOPE"}), Reply::Error("ERR unknown command 'NOPE', with args beginning with: "));
}

}  // namespace
}  // namespace weir::sim
