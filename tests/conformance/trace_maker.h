// Makes a trace step by step, each from the answers before it: what to ask, and where to move the
// clock first, to just before, at and just after the instants at which answers change. Whether the
// clock goes there is up to whoever drives it: servers have clocks of their own, and the oracle is
// asked as of the time that they say.
//
//   TraceMaker maker(family, seed, options);
//   while (maker.HasNext()) {
//     const TraceStep& step = maker.Next();
//     ... ask whoever is tested, at step.now if possible ...
//     maker.Answer(at);  // What it should have said.
//   }
#pragma once

#include <memory>
#include <vector>

#include "oracle.h"
#include "random.h"
#include "trace.h"

namespace weir::conformance {

class TraceMaker {
 public:
  TraceMaker(Family family, std::uint64_t seed, const TraceOptions& options);

  bool HasNext() const { return static_cast<std::int64_t>(trace_.steps.size()) < length_; }
  // Without an answer yet.
  const TraceStep& Next();
  // The same step as it was asked at that time, with the oracle's answer.
  const TraceStep& Answer(Now at);

  const Trace& trace() const { return trace_; }

 private:
  // One that can still be settled or unbooked.
  struct OpenCharge {
    int number;
    std::int64_t cost;
    Keeps keeps;
    SteadyTime at;
    bool has_ended = false;  // A lease: its time was over at some step.
  };

  bool OnlyForward() const { return options_.plain || options_.only_forward; }
  void Move();
  void MoveFreely();
  void MoveBy(Duration step);
  void SetWall();

  TraceAction RandomAction();
  TraceAction PlainAction();
  Keeps RandomKeeps();
  void EndLeases();
  bool CanSettle(const OpenCharge& charge) const;
  bool CanSettleAny() const;
  OpenCharge TakeOut(std::size_t place);
  TraceAction SettleOne();
  TraceAction UnbookLast();
  std::int64_t RandomCost();
  std::int64_t RandomSmall() { return random_.Between(1, 5); }
  Duration RandomWait();

  Random random_;
  const Family family_;
  const TraceOptions options_;
  Trace trace_;
  std::int64_t length_ = 0;
  Now now_;
  Duration period_{0};
  std::unique_ptr<Oracle> oracle_;
  Decision last_;
  std::vector<OpenCharge> open_;
  // So that much is counted at once, and logs fray where much is given back.
  bool calm_ = false;
  int settle_weight_ = 0;
  int reserve_percent_ = 0;
};

}  // namespace weir::conformance
