// The shipped script as a Store: every group goes through the bytes of a call and of its answer to
// a simulated server whose clock is the Now of each Submit.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/hash.h"
#include "sim/lua_engine.h"
#include "sim/redis_core.h"
#include "store/redis/script_call.h"
#include "store/store.h"

namespace weir::conformance {

class ScriptStore final : public Store {
 public:
  enum class Expiry : bool {
    kAsTold,
    // Keys stay, so that a clock that goes forward and back meets what it left.
    kNever,
  };
  // Whether calls are shared with somebody else: the script has other ways for those.
  enum class Company : bool { kNever, kEverySecondCall };
  explicit ScriptStore(Expiry expiry, Company company = Company::kNever);

  std::uint64_t Hash(std::string_view key) const noexcept override { return hasher_(key); }
  // All groups in one call, as far as there is room.
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;

  sim::RedisCore& redis() noexcept { return redis_; }
  std::size_t corrupt() const noexcept { return corrupt_; }
  // What went wrong that no group could be told.
  const std::string& problem() const noexcept { return problem_; }

  // A call that somebody has made, in all its rounds.
  void Run(redis::ScriptCall& call);

 private:
  void Look();

  const Expiry expiry_;
  const Company company_;
  bool was_alone_ = false;  // The last call.
  const KeyHasher hasher_{HashKind::kXxh3, 1};
  sim::RedisCore redis_;
  redis::ScriptCall call_;
  std::size_t corrupt_ = 0;
  std::string problem_;
};

}  // namespace weir::conformance
