#include <weir/decision.h>

namespace weir {

std::string_view NameOf(Reason reason) noexcept {
  switch (reason) {
    case Reason::kOk:
      return "ok";
    case Reason::kLimited:
      return "limited";
    case Reason::kNeverFits:
      return "never_fits";
    case Reason::kBanned:
      return "banned";
    case Reason::kAllowList:
      return "allow_list";
    case Reason::kDenyList:
      return "deny_list";
    case Reason::kNoRule:
      return "no_rule";
    case Reason::kStoreFailure:
      return "store_failure";
    case Reason::kOverload:
      return "overload";
  }
  return "unknown";
}

std::string_view NameOf(Source source) noexcept {
  switch (source) {
    case Source::kMemory:
      return "memory";
    case Source::kStore:
      return "store";
    case Source::kLease:
      return "lease";
    case Source::kFallback:
      return "fallback";
    case Source::kOpen:
      return "open";
    case Source::kClosed:
      return "closed";
  }
  return "unknown";
}

}  // namespace weir
