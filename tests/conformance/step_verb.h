// A trace's verbs as the steps and stores call them.
#pragma once

#include <utility>

#include "algorithm/step.h"
#include "subject.h"

namespace weir::conformance {

inline weir::Verb StepVerb(TraceVerb verb) {
  switch (verb) {
    case TraceVerb::kCheck:
      return weir::Verb::kCheck;
    case TraceVerb::kPeek:
      return weir::Verb::kPeek;
    case TraceVerb::kRefund:
      return weir::Verb::kRefund;
    case TraceVerb::kPenalize:
      return weir::Verb::kPenalize;
    case TraceVerb::kReset:
      return weir::Verb::kReset;
    case TraceVerb::kSettle:
      return weir::Verb::kSettle;
    case TraceVerb::kUnbook:
      return weir::Verb::kUnbook;
  }
  std::unreachable();
}

}  // namespace weir::conformance
