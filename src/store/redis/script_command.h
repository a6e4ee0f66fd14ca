// A script call on its way, with those who are to be told about its groups.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/limit.h>

#include "store/redis/call.h"
#include "store/redis/script_call.h"
#include "store/store.h"

namespace weir::redis {

class ScriptCommand final : public Call {
 public:
  class Owner {
   public:
    virtual void OnEnded(std::unique_ptr<ScriptCommand> command, Node& node,
                         CallEnd end) noexcept = 0;

   protected:
    ~Owner() = default;
  };
  explicit ScriptCommand(Owner& owner) noexcept : owner_(owner) {}

  // Empty again, for another call.
  void Clear() noexcept;
  // One group, and what else is known or wanted of it.
  struct Item {
    Group& group;
    Completion& completion;
    ScriptCall::Part part{};             // If it is part of a larger one.
    ScriptCall::Claim* claim = nullptr;  // Out, if the part claims.
  };
  // False if there is no room for it.
  bool Add(const Item& item);
  std::size_t groups() const noexcept { return call_.groups(); }
  std::size_t corrupt() const noexcept { return call_.corrupt(); }
  // Settlements ask first what there is to settle.
  bool WantsAnotherRound() const noexcept { return call_.WantsAnotherRound(); }

  // All groups are decided, or all fail.
  void Complete() noexcept;
  void Fail(const Error& error) noexcept;

  void Write(ByteBuffer& out) override;
  bool Take(const resp::ReplyItem& item) noexcept override { return call_.Take(item); }
  void Ended(std::unique_ptr<Call> self, Node& node, CallEnd end) noexcept override;
  std::optional<WallTime> server_time() const noexcept override { return call_.server_time(); }
  std::uint64_t weight() const noexcept override { return call_.groups(); }

  std::uint16_t slot = 0;
  int redirections = 0;
  bool was_repeated = false;  // After READONLY.
  bool settles = false;
  bool undoes = false;

 private:
  Owner& owner_;
  ScriptCall call_;
  // One for each group, in their order.
  struct Told {
    Completion* completion;
    ScriptCall::Claim* claim;
  };
  std::vector<Told> told_;
};

// Charges a key of nobody's, to see whether the server can.
class ProbeCommand final : public Call {
 public:
  // In a slot that the server has, or in any.
  explicit ProbeCommand(std::optional<std::uint16_t> slot);

  void Write(ByteBuffer& out) override;
  bool Take(const resp::ReplyItem& item) noexcept override { return call_.Take(item); }
  std::optional<WallTime> server_time() const noexcept override { return call_.server_time(); }
  void Ended(std::unique_ptr<Call>, Node&, CallEnd) noexcept override {}

 private:
  const std::string key_;
  Charge charge_;
  Decision decision_;
  Group group_;
  ScriptCall call_;
};

}  // namespace weir::redis
