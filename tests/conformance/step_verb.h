// A trace's verbs as the steps and stores call them.
#pragma once

#include <utility>

#include "algorithm/step.h"
#include "subject.h"

namespace weir::conformance {

inline weir::Verb StepVerb(Verb verb) {
  switch (verb) {
    case Verb::kCheck:
      return weir::Verb::kCheck;
    case Verb::kPeek:
      return weir::Verb::kPeek;
    case Verb::kRefund:
      return weir::Verb::kRefund;
    case Verb::kPenalize:
      return weir::Verb::kPenalize;
    case Verb::kReset:
      return weir::Verb::kReset;
    case Verb::kSettle:
      return weir::Verb::kSettle;
    case Verb::kUnbook:
      return weir::Verb::kUnbook;
  }
  std::unreachable();
}

}  // namespace weir::conformance
