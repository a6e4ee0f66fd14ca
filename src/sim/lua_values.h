// Between replies and values of Lua, as Redis converts them.
#pragma once

#include <string_view>

#include "sim/reply.h"

struct lua_State;

namespace weir::sim {

// A nil becomes false, an error a table with `err`, a status one with `ok`.
void PushReply(lua_State* lua, const Reply& reply);
// {err = text}
void PushErrorTable(lua_State* lua, std::string_view text);

// The value on top of the stack, which stays there: numbers lose their fraction, true is 1, false
// is nil, and an array ends at its first nil.
Reply ToReply(lua_State* lua);

// The library `struct`, as far as it is used, as a global name.
void OpenStructLibrary(lua_State* lua);

}  // namespace weir::sim
