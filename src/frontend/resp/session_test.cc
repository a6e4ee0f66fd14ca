// What clients send when they connect with their default settings, as seen on the wire.
#include "frontend/resp/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/resp/resp_under_test.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

TEST(Session, GreetsInTheVersionThatWasAskedFor) {
  RespUnderTest resp(kOneRule);
  EXPECT_THAT(resp.Ask("HELLO"), MatchesRegex("\\[server, weir, version, 7.2.0, proto, 2, id, "
                                              "[0-9]+, mode, standalone, role, master, modules, "
                                              "\\[\\]\\]"));
  EXPECT_THAT(resp.Ask("hello 3"), StartsWith("{server: weir, version: 7.2.0, proto: 3,"));
  EXPECT_THAT(resp.Ask("HELLO"), HasSubstr("proto: 3"));
  EXPECT_THAT(resp.Ask("HELLO 2"), HasSubstr("proto, 2"));
  EXPECT_EQ(resp.Ask("HELLO 4"), "-NOPROTO unsupported protocol version");
  EXPECT_THAT(resp.Ask("HELLO 3 BOGUS"), StartsWith("-ERR Syntax error in HELLO option"));
  EXPECT_THAT(resp.Ask("HELLO 3 AUTH me"), StartsWith("-ERR Syntax error in HELLO option"));
  EXPECT_THAT(resp.Ask("PING"), "+PONG");
}

TEST(Session, LetsGoRedisConnect) {
  RespUnderTest resp(kOneRule);
  EXPECT_THAT(resp.AskAll({"hello 3", "client setinfo LIB-NAME go-redis(,go1.22)",
                           "client setinfo LIB-VER 9.7.0",
                           "client maint_notifications on moving-endpoint-type none"}),
              ElementsAre(HasSubstr("proto: 3"), "+OK", "+OK", StartsWith("-ERR unknown sub")));
}

TEST(Session, LetsRedisPyConnect) {
  RespUnderTest resp(kOneRule);
  EXPECT_THAT(resp.AskAll({"CLIENT SETINFO LIB-NAME redis-py", "CLIENT SETINFO LIB-VER 5.0.1",
                           "SELECT 0", "SELECT 1"}),
              ElementsAre("+OK", "+OK", "+OK", "-ERR DB index is out of range"));
  EXPECT_THAT(resp.Ask("CLIENT INFO"),
              MatchesRegex("id=[0-9]+ addr=203.0.113.9 name= db=0 resp=2 lib-name=redis-py "
                           "lib-ver=5.0.1\n"));
}

TEST(Session, LetsIoredisBeReady) {
  RespUnderTest resp(kOneRule);
  const std::string info = resp.Ask("info");
  EXPECT_THAT(info, HasSubstr("\r\nloading:0\r\n"));
  EXPECT_THAT(info, HasSubstr("redis_version:7.2.0\r\n"));
  EXPECT_THAT(info, HasSubstr("\r\nredis_mode:standalone\r\n"));
  EXPECT_THAT(info, HasSubstr("\r\nrole:master\r\n"));
  EXPECT_THAT(info, HasSubstr("\r\nweir_policy_version:1\r\n"));
}

TEST(Session, TellsRedisCliOfItsCommands) {
  RespUnderTest resp(kOneRule);
  EXPECT_THAT(resp.Ask("COMMAND DOCS weir.check"),
              MatchesRegex("\\[weir.check, \\[summary, .*, since, 1.0.0, group, generic\\]\\]"));
  EXPECT_EQ(resp.Ask("COMMAND DOCS nothing"), "[]");
  EXPECT_EQ(resp.Ask("COMMAND INFO cl.throttle nothing"),
            "[[cl.throttle, -5, [+fast], 1, 1, 1, [], [], [], []], null]");
  EXPECT_EQ(resp.Ask("COMMAND COUNT"), "22");
  EXPECT_THAT(resp.Ask("COMMAND"), StartsWith("[[cl.throttle, -5,"));
  EXPECT_THAT(resp.Ask("COMMAND LIST"), StartsWith("[cl.throttle, weir.check,"));
  EXPECT_THAT(resp.Ask("COMMAND GETKEYS"), StartsWith("-ERR unknown subcommand \"GETKEYS\""));
  resp.Ask("HELLO 3");
  EXPECT_THAT(resp.Ask("COMMAND DOCS"), StartsWith("{cl.throttle: {summary: "));
}

TEST(Session, KeepsANameIfItIsOne) {
  RespUnderTest resp(kOneRule);
  EXPECT_EQ(resp.Ask("CLIENT GETNAME"), "null");
  EXPECT_EQ(resp.Ask("CLIENT SETNAME worker-1"), "+OK");
  EXPECT_EQ(resp.Ask("CLIENT GETNAME"), "worker-1");
  EXPECT_THAT(resp.exchange.Send("CLIENT SETNAME \"a b\"\r\n"), StartsWith("-ERR Client names"));
  EXPECT_THAT(resp.Ask("CLIENT SETNAME " + std::string(300, 'x')), StartsWith("-ERR Client names"));
  EXPECT_EQ(resp.Ask("CLIENT GETNAME"), "worker-1");
  EXPECT_EQ(resp.Ask("RESET"), "+RESET");
  EXPECT_EQ(resp.Ask("CLIENT GETNAME"), "null");
}

TEST(Session, RefusesWhatWouldChangeTheProtocolUnderTheClient) {
  RespUnderTest resp(kOneRule);
  for (const char* command : {"CLIENT REPLY OFF", "CLIENT TRACKING ON", "CLIENT KILL 1"}) {
    EXPECT_THAT(resp.Ask(command), StartsWith("-ERR unknown subcommand")) << command;
  }
  EXPECT_EQ(resp.Ask("CLIENT NO-EVICT on"), "+OK");
  EXPECT_EQ(resp.Ask("CLIENT NO-TOUCH OFF"), "+OK");
  EXPECT_EQ(resp.Ask("CLIENT NO-TOUCH maybe"), "-ERR syntax error");
}

TEST(Session, AnswersPingAndEcho) {
  RespUnderTest resp(kOneRule);
  EXPECT_THAT(
      resp.AskAll({"ping", "PING there", "ECHO this", "ECHO"}),
      ElementsAre("+PONG", "there", "this", "-ERR wrong number of arguments for 'echo' command"));
}

TEST(Session, EndsWithQuit) {
  RespUnderTest resp(kOneRule);
  EXPECT_THAT(resp.AskAll({"PING", "QUIT", "PING"}), ElementsAre("+PONG", "+OK"));
  EXPECT_TRUE(resp.exchange.replies().closing());
}

TEST(Session, RepeatsACommandItDoesNotKnow) {
  RespUnderTest resp(kOneRule);
  EXPECT_EQ(resp.Ask("foo a b"), "-ERR unknown command 'foo', with args beginning with: 'a' 'b' ");
  EXPECT_EQ(resp.Ask("foo"), "-ERR unknown command 'foo', with args beginning with: ");
  EXPECT_LT(resp.Ask("foo " + std::string(10'000, 'x')).size(), 300U);
  EXPECT_EQ(resp.exchange.Send("\"foo\\r\\n+OK\"\r\n"),
            "-ERR unknown command 'foo  +OK', with args beginning with: \r\n");
}

}  // namespace
}  // namespace weir
