// The one Lua engine of a program that runs our script without a server.
#pragma once

#include "sim/lua_engine.h"

namespace weir::conformance {

// Compiling the script takes longer than deciding, and runs leave nothing behind in the engine.
// Not thread-safe.
inline sim::LuaEngine& ScriptEngine() {
  static sim::LuaEngine engine;
  return engine;
}

}  // namespace weir::conformance
