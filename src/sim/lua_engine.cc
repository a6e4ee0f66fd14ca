// Lua leaves a function that failed by a jump that runs no destructors. So every function that Lua
// calls does its work in another that returns, and raises the error when nothing is left to end.
#include "sim/lua_engine.h"

#include <array>
#include <cstdio>
#include <unordered_map>
#include <vector>

#include <lua.hpp>
#include <openssl/sha.h>

#include "sim/lua_values.h"

namespace weir::sim {
namespace {

constexpr int kHookInterval = 1000;
constexpr char kEngineKey[] = "weir.engine";

// The words of redis.call, which are on the stack, and its answer.
Reply CallWithStack(lua_State* lua, LuaEngine::Commands& commands) {
  const int count = lua_gettop(lua);
  if (count == 0) {
    return Reply::Error("ERR Please specify at least one argument for this redis lib call");
  }
  std::vector<std::string> numbers;  // Their texts; reserved, so that they stay where they are.
  numbers.reserve(static_cast<std::size_t>(count));
  std::vector<std::string_view> words;
  words.reserve(static_cast<std::size_t>(count));
  for (int i = 1; i <= count; ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      std::array<char, 64> text{};
      const int length = std::snprintf(text.data(), text.size(), "%.17g", lua_tonumber(lua, i));
      words.push_back(numbers.emplace_back(text.data(), static_cast<std::size_t>(length)));
    } else if (lua_type(lua, i) == LUA_TSTRING) {
      std::size_t length = 0;
      const char* const text = lua_tolstring(lua, i, &length);
      words.emplace_back(text, length);
    } else {
      return Reply::Error("ERR Lua redis lib command arguments must be strings or integers");
    }
  }
  return commands.Call(words);
}

// Whether the answer, which is on the stack then, is an error.
bool CallAndPush(lua_State* lua, LuaEngine::Commands& commands) {
  const Reply reply = CallWithStack(lua, commands);
  lua_settop(lua, 0);
  PushReply(lua, reply);
  return reply.IsError();
}

int ErrorReply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    PushErrorTable(lua, "ERR wrong number or type of arguments");
    return 1;
  }
  const char* text = lua_tostring(lua, 1);
  if (*text == '-') ++text;
  // What has no code gets one.
  const bool has_code = std::string_view(text).contains(' ');
  lua_newtable(lua);
  if (has_code) {
    lua_pushstring(lua, text);
  } else {
    lua_pushfstring(lua, "ERR %s", text);
  }
  lua_setfield(lua, -2, "err");
  return 1;
}

int StatusReply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    PushErrorTable(lua, "ERR wrong number or type of arguments");
    return 1;
  }
  lua_newtable(lua);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

// pcall, which hands a script the text of an error that redis.call raised, not its table.
int TextOnFailure(lua_State* lua) {
  luaL_checkany(lua, 1);
  const bool failed = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0) != 0;
  if (failed && lua_istable(lua, -1)) lua_getfield(lua, -1, "err");
  if (failed) lua_replace(lua, 1);
  if (failed) lua_settop(lua, 1);
  lua_pushboolean(lua, failed ? 0 : 1);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

int AbsentName(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

int FixedNames(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

// Makes a table of what went wrong, with the place.
int OnError(lua_State* lua) {
  if (lua_type(lua, 1) != LUA_TTABLE) {
    const char* const text = lua_tostring(lua, 1);
    lua_newtable(lua);
    lua_pushfstring(lua, "ERR %s", text == nullptr ? "unknown" : text);
    lua_setfield(lua, -2, "err");
    lua_replace(lua, 1);
    lua_settop(lua, 1);
  }
  lua_Debug where;
  bool is_known = lua_getstack(lua, 1, &where) != 0 && lua_getinfo(lua, "nSl", &where) != 0;
  if (is_known && *where.what == 'C') {
    is_known = lua_getstack(lua, 2, &where) != 0 && lua_getinfo(lua, "nSl", &where) != 0;
  }
  if (!is_known) return 1;
  lua_pushfstring(lua, "%s:%d", where.source, where.currentline);
  lua_setfield(lua, 1, "place");
  return 1;
}

}  // namespace

struct LuaEngine::State {
  explicit State(const Options& given) : options(given), lua(luaL_newstate()) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { lua_close(lua); }

  static State& Of(lua_State* lua) {
    lua_getfield(lua, LUA_REGISTRYINDEX, kEngineKey);
    auto* const state = static_cast<State*>(lua_touserdata(lua, -1));
    lua_pop(lua, 1);
    return *state;
  }

  // What Lua calls.
  static int Call(lua_State* lua) {
    if (CallAndPush(lua, *Of(lua).commands)) return lua_error(lua);
    return 1;
  }
  static int ProtectedCall(lua_State* lua) {
    CallAndPush(lua, *Of(lua).commands);
    return 1;
  }
  static void Count(lua_State* lua, lua_Debug* /*where*/);

  void OpenLibraries();
  void OpenCommands();
  // The names that scripts see: those there are now, and no others, ever.
  void FixNames();
  void SetName(const char* name, Words words);
  Reply ErrorOf(std::string_view digest);

  const Options options;
  lua_State* const lua;
  Commands* commands = nullptr;  // Of the run under way.
  std::int64_t used = 0;
  std::uint64_t random = 0;
  std::unordered_map<std::string, int> scripts;  // By digest: their places in the registry.
  int environment = 0;                           // Likewise: what stands before the names.
};

void LuaEngine::State::Count(lua_State* lua, lua_Debug* /*where*/) {
  State& state = Of(lua);
  state.used += kHookInterval;
  if (state.used <= state.options.instructions) return;
  // Raised at every step from now on, so that no script can catch it for good.
  lua_sethook(lua, Count, LUA_MASKCOUNT, 1);
  luaL_error(lua, "Script took too long");
}

void LuaEngine::State::OpenLibraries() {
  for (const lua_CFunction open : {luaopen_base, luaopen_table, luaopen_string, luaopen_math}) {
    lua_pushcfunction(lua, open);
    lua_call(lua, 0, 0);
  }
  for (const char* const name : {"dofile", "loadfile", "print", "newproxy", "getfenv", "setfenv"}) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
  lua_pushcfunction(lua, TextOnFailure);
  lua_setglobal(lua, "pcall");
  OpenStructLibrary(lua);
}

void LuaEngine::State::OpenCommands() {
  static constexpr luaL_Reg kFunctions[] = {{"call", Call},
                                            {"pcall", ProtectedCall},
                                            {"error_reply", ErrorReply},
                                            {"status_reply", StatusReply},
                                            {nullptr, nullptr}};
  luaL_register(lua, "redis", kFunctions);
  lua_pop(lua, 1);
}

void LuaEngine::State::FixNames() {
  // Scripts see an empty table. What is not in it is looked up among the names, and what is not
  // there, either, is an error.
  lua_newtable(lua);
  lua_newtable(lua);
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, FixedNames);
  lua_setfield(lua, -2, "__newindex");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  lua_pushvalue(lua, -1);
  lua_setglobal(lua, "_G");
  environment = luaL_ref(lua, LUA_REGISTRYINDEX);

  lua_newtable(lua);
  lua_pushcfunction(lua, AbsentName);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

void LuaEngine::State::SetName(const char* name, Words words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  int index = 0;
  for (const std::string_view word : words) {
    lua_pushlstring(lua, word.data(), word.size());
    lua_rawseti(lua, -2, ++index);
  }
  lua_setglobal(lua, name);
}

// What OnError left on the stack.
Reply LuaEngine::State::ErrorOf(std::string_view digest) {
  std::string text = "ERR unknown error";
  if (lua_type(lua, -1) == LUA_TTABLE) {
    Reply error = ToReply(lua);
    if (error.IsError()) text = std::move(error.text);
    lua_getfield(lua, -1, "place");
    if (lua_isstring(lua, -1)) {
      text += " script: " + std::string(digest) + ", on " + lua_tostring(lua, -1) + ".";
    }
    lua_pop(lua, 1);
  } else if (lua_isstring(lua, -1)) {
    text = std::string("ERR ") + lua_tostring(lua, -1);
  }
  return Reply::Error(std::move(text));
}

LuaEngine::LuaEngine(const Options& options) : state_(std::make_unique<State>(options)) {
  lua_State* const lua = state_->lua;
  lua_pushlightuserdata(lua, state_.get());
  lua_setfield(lua, LUA_REGISTRYINDEX, kEngineKey);
  state_->OpenLibraries();
  state_->OpenCommands();
  for (const char* const name : {"KEYS", "ARGV"}) state_->SetName(name, {});
  state_->FixNames();
}

LuaEngine::~LuaEngine() = default;

std::string LuaEngine::DigestOf(std::string_view text) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<Reply> LuaEngine::Load(std::string_view digest, std::string_view text) {
  if (Knows(digest)) return std::nullopt;
  lua_State* const lua = state_->lua;
  std::string edited;
  if (state_->options.edit) text = edited = state_->options.edit(std::string(text));
  if (luaL_loadbuffer(lua, text.data(), text.size(), "@user_script") != 0) {
    Reply error = Reply::Error(std::string("ERR Error compiling script (new function): ") +
                               lua_tostring(lua, -1));
    lua_pop(lua, 1);
    return error;
  }
  lua_rawgeti(lua, LUA_REGISTRYINDEX, state_->environment);
  lua_setfenv(lua, -2);
  state_->scripts.emplace(digest, luaL_ref(lua, LUA_REGISTRYINDEX));
  return std::nullopt;
}

bool LuaEngine::Knows(std::string_view digest) const {
  return state_->scripts.contains(std::string(digest));
}

Reply LuaEngine::Run(std::string_view digest, Words keys, Words arguments, Commands& commands) {
  lua_State* const lua = state_->lua;
  state_->commands = &commands;
  state_->used = 0;
  state_->SetName("KEYS", keys);
  state_->SetName("ARGV", arguments);
  lua_pushcfunction(lua, OnError);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, state_->scripts.at(std::string(digest)));
  lua_sethook(lua, State::Count, LUA_MASKCOUNT, kHookInterval);
  const int failed = lua_pcall(lua, 0, 1, -2);
  lua_sethook(lua, nullptr, 0, 0);
  Reply reply = failed == 0 ? ToReply(lua) : state_->ErrorOf(digest);
  lua_settop(lua, 0);
  state_->commands = nullptr;
  return reply;
}

}  // namespace weir::sim
