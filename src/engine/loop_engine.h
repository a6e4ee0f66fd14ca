// How those ask who serve many on one thread: when the store is shared by several processes its
// answers take a while, and nobody may wait for them. Every question is answered later, on the same
// thread; what one turn of the loop asks goes to the store together.
//
//   questions.Ask({.kind = Question::Kind::kCheck, .request = request},
//                 [=](const Told& told) { Reply(connection, told); });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <weir/engine.h>

#include "net/loop.h"

namespace weir {

// Everything it refers to must stay good until Ask returns, and no longer.
struct Question {
  enum class Kind : std::uint8_t {
    kCheck,
    kPeek,
    kReserve,
    kRefund,
    kPenalize,
    kReset,
    kCommit,
    kCancel,
    kLimit,  // Under a limit that comes with it: Engine::CheckLimits.
    kCheckTogether,
    kRefundTogether,
  };

  Kind kind = Kind::kCheck;
  Request request{};                                     // All up to kReset.
  std::int64_t cost = 1;                                 // All but kCancel, kReset and parts.
  Duration ttl = std::chrono::seconds(60);               // kReserve.
  ReservationId reservation = ReservationId::kNone;      // kCommit, kCancel.
  bool keeps_cost = false;                               // kCommit: it cost what was reserved.
  std::string_view key{};                                // kLimit,
  const Limit* limit = nullptr;                          // likewise,
  LimitRequest::Verb verb = LimitRequest::Verb::kCheck;  // likewise.
  std::span<const RequestPart> parts{};                  // kCheckTogether, kRefundTogether.
  bool at_once = false;                                  // kCheck: as BatchRequest has it.
};

// The answer. Good only while it is told.
struct Told {
  Answer answer{};
  // What each rule decided, in the order of the policy; or what speaks for each part.
  std::span<const RuleDecision> each{};
  // Nothing was decided: kCommit, kCancel, and kLimit if the limit is beyond what the store counts.
  const Error* error = nullptr;
};

// Belongs to the loop's thread.
class LoopEngine {
 public:
  // Both must outlive it.
  static std::unique_ptr<LoopEngine> Make(Engine& engine, Loop& loop);
  virtual ~LoopEngine() = default;

  // Whether answers take a while. If not, the state is in this process: then ask the engine, which
  // answers at once, and faster. A policy may change that at any time; who asks either of them
  // although the other would be right is answered all the same.
  virtual bool is_shared() const noexcept = 0;
  // Goes to the store of the policy in force, if that has changed, and leaves the one before once
  // what was asked there is answered. The next question does so, too.
  virtual void TakeUpStore() = 0;

  using Done = std::function<void(const Told&)>;
  // `done` is called once: in a later turn, or before this returns. When the questions end first,
  // it is called from within their end.
  virtual void Ask(const Question& question, Done done) = 0;
  // How many are under way.
  virtual std::size_t pending() const noexcept = 0;
};

}  // namespace weir
