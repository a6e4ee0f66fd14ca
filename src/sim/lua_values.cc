#include "sim/lua_values.h"

#include <cmath>
#include <limits>

#include <lua.hpp>

namespace weir::sim {
namespace {

// As the machine Redis runs on converts a double: what does not fit becomes the smallest number.
std::int64_t Truncated(double number) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (!(number > -kEnd && number < kEnd)) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

std::string TextAt(lua_State* lua, int index) {
  std::size_t length = 0;
  const char* const text = lua_tolstring(lua, index, &length);
  return {text, length};
}

// The text of a field of the table on top, if it is one.
bool TakeTextField(lua_State* lua, const char* name, std::string& text) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  const bool is_text = lua_type(lua, -1) == LUA_TSTRING;
  if (is_text) text = TextAt(lua, -1);
  lua_pop(lua, 1);
  return is_text;
}

Reply TableToReply(lua_State* lua) {
  // Deeper is a mistake, and Redis would run out of its stack there, too.
  if (!lua_checkstack(lua, 8)) return Reply::Error("ERR reached lua stack limit");
  std::string text;
  if (TakeTextField(lua, "err", text)) return Reply::Error(std::move(text));
  if (TakeTextField(lua, "ok", text)) return Reply::Status(std::move(text));
  Reply reply = Reply::Array();
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    reply.items.push_back(ToReply(lua));
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return reply;
}

}  // namespace

void PushErrorTable(lua_State* lua, std::string_view text) {
  lua_newtable(lua);
  lua_pushlstring(lua, text.data(), text.size());
  lua_setfield(lua, -2, "err");
}

void PushReply(lua_State* lua, const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kNil:
    case Reply::Kind::kNilArray:
      return lua_pushboolean(lua, 0);
    case Reply::Kind::kInteger:
      return lua_pushnumber(lua, static_cast<double>(reply.integer));
    case Reply::Kind::kBulk:
      return lua_pushlstring(lua, reply.text.data(), reply.text.size());
    case Reply::Kind::kStatus:
      lua_newtable(lua);
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      return lua_setfield(lua, -2, "ok");
    case Reply::Kind::kError:
      return PushErrorTable(lua, reply.text);
    case Reply::Kind::kArray:
      break;
  }
  lua_createtable(lua, static_cast<int>(reply.items.size()), 0);
  int index = 0;
  for (const Reply& item : reply.items) {
    PushReply(lua, item);
    lua_rawseti(lua, -2, ++index);
  }
}

Reply ToReply(lua_State* lua) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
      return Reply::Bulk(TextAt(lua, -1));
    case LUA_TBOOLEAN:
      return lua_toboolean(lua, -1) != 0 ? Reply::Integer(1) : Reply::Nil();
    case LUA_TNUMBER:
      return Reply::Integer(Truncated(lua_tonumber(lua, -1)));
    case LUA_TTABLE:
      return TableToReply(lua);
    default:
      return Reply::Nil();
  }
}

}  // namespace weir::sim
