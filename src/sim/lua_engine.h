// Runs scripts as Redis 7.0 runs them: Lua 5.1, the same libraries as far as they are used, the
// same conversions of numbers and replies, and errors in the same words.
//
// Global names are fixed, as in Redis, so a script leaves nothing behind but what it wrote by
// commands; one engine may therefore serve any number of servers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/keyspace.h"
#include "sim/reply.h"

namespace weir::sim {

class LuaEngine {
 public:
  struct Options {
    // A script that takes more is ended with an error.
    std::int64_t instructions = 20'000'000;
    // What is run in a script's place: for tests that must find a mistake.
    std::function<std::string(std::string)> edit{};
  };

  // What redis.call reaches.
  class Commands {
   public:
    virtual Reply Call(Words words) = 0;

   protected:
    ~Commands() = default;
  };

  LuaEngine() : LuaEngine(Options{}) {}
  explicit LuaEngine(const Options& options);
  LuaEngine(const LuaEngine&) = delete;
  LuaEngine& operator=(const LuaEngine&) = delete;
  ~LuaEngine();

  // 40 hex digits.
  static std::string DigestOf(std::string_view text);

  // Nothing if it could be compiled, else an error for whoever sent it.
  std::optional<Reply> Load(std::string_view digest, std::string_view text);
  bool Knows(std::string_view digest) const;

  // A script that was loaded.
  Reply Run(std::string_view digest, Words keys, Words arguments, Commands& commands);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::sim
