#include "sim/redis_core.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

class RedisCoreTest : public testing::Test {
 protected:
  Reply Eval(std::string_view text) {
    return redis.Execute({"EVAL", text, "1", "key", "argument"});
  }

  LuaEngine engine{{.instructions = 100'000}};
  RedisCore redis{engine};
};

TEST_F(RedisCoreTest, HandsKeysAndArgumentsToScripts) {
  EXPECT_EQ(ToText(Eval("return {KEYS[1], ARGV[1], #KEYS, #ARGV}")),
            R"(["key", "argument", (integer) 1, (integer) 1])");
}

TEST_F(RedisCoreTest, TurnsValuesOfLuaIntoRepliesAsRedisDoes) {
  EXPECT_EQ(ToText(Eval("return {3.99, -3.99, 1e300, true, false, 'text', {ok = 'fine'}}")),
            R"([(integer) 3, (integer) -3, (integer) -9223372036854775808, (integer) 1, (nil), )"
            R"("text", fine])");
  EXPECT_EQ(ToText(Eval("return {1, nil, 3}")), "[(integer) 1]");
  EXPECT_EQ(ToText(Eval("return {err = 'MINE of my own'}")), "(error) MINE of my own");
  EXPECT_EQ(ToText(Eval("return redis.error_reply('MINE of my own')")), "(error) MINE of my own");
  EXPECT_EQ(ToText(Eval("return redis.status_reply('fine')")), "fine");
  EXPECT_EQ(ToText(Eval("return nil")), "(nil)");
}

TEST_F(RedisCoreTest, TurnsRepliesIntoValuesOfLuaAsRedisDoes) {
  EXPECT_EQ(ToText(Eval("return {redis.call('GET', 'none') == false, "
                        "redis.call('SET', 'k', 'v').ok, type(redis.call('INCR', 'n')), "
                        "redis.call('TYPE', 'k').ok}")),
            R"([(integer) 1, "OK", "number", "string"])");
}

TEST_F(RedisCoreTest, WritesNumbersInCommandsWithSeventeenDigits) {
  Eval(
      "redis.call('SET', 'a', 1755900000123456) redis.call('SET', 'b', 0.1) "
      "redis.call('SET', 'c', 1e17)");
  EXPECT_EQ(redis.Execute({"GET", "a"}).text, "1755900000123456");
  EXPECT_EQ(redis.Execute({"GET", "b"}).text, "0.10000000000000001");
  EXPECT_EQ(redis.Execute({"GET", "c"}).text, "1e+17");
  EXPECT_EQ(Eval("return '' .. 1755900000123456").text, "1.7559000001235e+15");
}

TEST_F(RedisCoreTest, SaysWhereAScriptFailed) {
  const std::string text = "\nreturn redis.call('INCRBY', KEYS[1], 'x')";
  EXPECT_EQ(Eval(text).text, "ERR value is not an integer or out of range script: " +
                                 LuaEngine::DigestOf(text) + ", on @user_script:2.");
  const std::string index = "local t = nil return t.x";
  EXPECT_EQ(Eval(index).text,
            "ERR user_script:1: attempt to index local 't' (a nil value) script: " +
                LuaEngine::DigestOf(index) + ", on @user_script:1.");
  EXPECT_TRUE(Eval("return (")
                  .text.starts_with("ERR Error compiling script (new function): user_script:1: "));
}

TEST_F(RedisCoreTest, LetsScriptsCatchErrors) {
  redis.Execute({"LPUSH", "key", "a"});
  EXPECT_EQ(ToText(Eval("local r = redis.pcall('GET', KEYS[1]) return r.err")),
            "\"WRONGTYPE Operation against a key holding the wrong kind of value\"");
  EXPECT_EQ(Eval("local r = redis.pcall('NOPE') return r.err").text,
            "ERR Unknown Redis command called from script");
  EXPECT_EQ(Eval("local r = redis.pcall('GET') return r.err").text,
            "ERR Wrong number of args calling Redis command from script");
  EXPECT_EQ(Eval("local r = redis.pcall('SET', 'k', {}) return r.err").text,
            "ERR Lua redis lib command arguments must be strings or integers");
}

TEST_F(RedisCoreTest, HandsScriptsTheTextOfWhatTheyCatchThemselves) {
  EXPECT_EQ(ToText(Eval("local ok, e = pcall(function() return redis.call('GET') end) "
                        "return {ok, e, type(e)}")),
            R"([(nil), "ERR Wrong number of args calling Redis command from script", "string"])");
  EXPECT_EQ(ToText(Eval("return {pcall(function(a, b) return a, b end, 1, 2)}")),
            "[(integer) 1, (integer) 1, (integer) 2]");
}

TEST_F(RedisCoreTest, FixesGlobalNames) {
  EXPECT_NE(Eval("return nothing")
                .text.find("Script attempted to access nonexistent global variable 'nothing'"),
            std::string::npos);
  EXPECT_NE(Eval("x = 1").text.find("Attempt to modify a readonly table"), std::string::npos);
  EXPECT_NE(Eval("function f() end").text.find("Attempt to modify a readonly table"),
            std::string::npos);
  EXPECT_EQ(Eval("local x = string.format('%d', 3) return x").text, "3");
}

TEST_F(RedisCoreTest, EndsAScriptThatNeverWould) {
  EXPECT_NE(Eval("while true do end").text.find("Script took too long"), std::string::npos);
  EXPECT_NE(Eval("while true do pcall(function() while true do end end) end")
                .text.find("Script took too long"),
            std::string::npos);
  EXPECT_EQ(Eval("return 'next'").text, "next");
}

TEST_F(RedisCoreTest, KnowsScriptsByDigestUntilTheyAreFlushed) {
  const std::string text = "return 7";
  const std::string digest = LuaEngine::DigestOf(text);
  EXPECT_EQ(redis.Execute({"EVALSHA", digest, "0"}),
            Reply::Error("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_EQ(redis.Execute({"SCRIPT", "LOAD", text}), Reply::Bulk(digest));
  EXPECT_EQ(redis.Execute({"EVALSHA", digest, "0"}), Reply::Integer(7));
  redis.Execute({"SCRIPT", "FLUSH"});
  EXPECT_TRUE(redis.Execute({"EVALSHA", digest, "0"}).IsError());
  EXPECT_EQ(redis.Execute({"EVAL", text, "0"}), Reply::Integer(7));
  EXPECT_EQ(redis.Execute({"EVALSHA", digest, "0"}), Reply::Integer(7));
  EXPECT_EQ(redis.Execute({"EVAL", text, "1"}),
            Reply::Error("ERR Number of keys can't be greater than number of args"));
}

TEST_F(RedisCoreTest, RefusesCallsThatMakeNoSense) {
  EXPECT_EQ(redis.Execute({"EVALSHA", "digest"}),
            Reply::Error("ERR wrong number of arguments for 'evalsha' command"));
  EXPECT_EQ(redis.Execute({"EVAL", "return 1"}),
            Reply::Error("ERR wrong number of arguments for 'eval' command"));
  EXPECT_TRUE(redis.Execute({"SCRIPT", "SHOUT"}).text.starts_with("ERR unknown subcommand"));
  EXPECT_TRUE(Eval("return redis.call()").text.starts_with("ERR Please specify at least one"));
  EXPECT_NE(Eval("return struct.pack('q', 1)").text.find("invalid format option [q]"),
            std::string::npos);
}

TEST_F(RedisCoreTest, FailsAScriptAtItsFirstWriteWhenWritesAreRefused) {
  redis.RefuseWrites("READONLY You can't write against a read only replica.");
  EXPECT_TRUE(
      Eval("redis.call('GET', 'k') return redis.call('SET', 'k', 'v')")
          .text.starts_with("READONLY You can't write against a read only replica. script"));
  EXPECT_EQ(Eval("return 1"), Reply::Integer(1));
  redis.RefuseWrites("");
  redis.SetOutOfMemory(true);
  EXPECT_TRUE(Eval("return redis.call('SET', 'k', 'v')").text.starts_with("OOM "));
  EXPECT_EQ(Eval("redis.call('DEL', 'k') return redis.call('SET', 'k', 'v')").text, "OK");
}

TEST_F(RedisCoreTest, MovesTimeWithinAScriptButNotExpiry) {
  redis.SetTime(ServerTime(5'000'000));
  redis.SetTimeStep(ServerTime(20'000));
  redis.Execute({"SET", "k", "v", "PX", "1"});
  EXPECT_EQ(ToText(Eval("local a = redis.call('TIME') local b = redis.call('TIME') "
                        "return {a[2], b[2], redis.call('GET', 'k')}")),
            R"(["0", "20000", "v"])");
}

TEST_F(RedisCoreTest, KeepsScriptsFromKeysOfOtherNodes) {
  redis.SetLocal([](std::string_view key) { return key == "key"; });
  EXPECT_EQ(Eval("return redis.call('GET', KEYS[1])"), Reply::Nil());
  EXPECT_TRUE(Eval("return redis.call('GET', 'other')")
                  .text.starts_with("ERR Script attempted to access a non local key"));
}

TEST_F(RedisCoreTest, PacksAndUnpacksBytes) {
  EXPECT_EQ(ToText(Eval("local s = struct.pack('>I4dHi8c3', 7, 0.5, 65535, -2, 'abc') "
                        "local a, b, c, d, e, n = struct.unpack('>I4dHi8c3', s) "
                        "return {#s, a, tostring(b), c, d, e, n}")),
            R"([(integer) 25, (integer) 7, "0.5", (integer) 65535, (integer) -2, "abc", )"
            R"((integer) 26])");
  EXPECT_NE(Eval("return struct.unpack('d', 'short')").text.find("data string too short"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::sim
