// The pure steps as a Subject.
#pragma once

#include <map>
#include <string>

#include <weir/limit.h>

#include "driven_key.h"
#include "subject.h"

namespace weir::conformance {

class PureSubject final : public Subject {
 public:
  PureSubject(const Limit& limit, Now start) : key_(limit, start) {}

  Decision Do(const TraceAction& action, Now now) override;

  // Everything the key knows that still counts, as text: equal before and after a step that must
  // change nothing.
  std::string State(Now now);

 private:
  DrivenKey key_;
  std::map<int, DrivenKey::Receipt> receipts_;
};

}  // namespace weir::conformance
