// The words of a policy file, shared by those who read it and those who write it.
#pragma once

#include <array>
#include <chrono>

#include <weir/policy_spec.h>

#include "limit/limit_words.h"

namespace weir {

inline constexpr std::array<Word<Align>, 2> kAligns = {{
    {"epoch", Align::kEpoch},
    {"calendar", Align::kCalendar},
}};
inline constexpr std::array<Word<std::chrono::weekday>, 7> kWeekdays = {{
    {"monday", std::chrono::Monday},
    {"tuesday", std::chrono::Tuesday},
    {"wednesday", std::chrono::Wednesday},
    {"thursday", std::chrono::Thursday},
    {"friday", std::chrono::Friday},
    {"saturday", std::chrono::Saturday},
    {"sunday", std::chrono::Sunday},
}};
inline constexpr std::array<Word<RuleMode>, 3> kRuleModes = {{
    {"enforce", RuleMode::kEnforce},
    {"shadow", RuleMode::kShadow},
    {"off", RuleMode::kOff},
}};
inline constexpr std::array<Word<FailureMode>, 3> kFailureModes = {{
    {"static", FailureMode::kStatic},
    {"open", FailureMode::kOpen},
    {"closed", FailureMode::kClosed},
}};
inline constexpr std::array<Word<Unidentified>, 3> kUnidentifiedWords = {{
    {"shared", Unidentified::kShare},
    {"deny", Unidentified::kDeny},
    {"skip", Unidentified::kSkipRule},
}};
inline constexpr std::array<Word<ForwardingHeader>, 2> kForwardingHeaders = {{
    {"x-forwarded-for", ForwardingHeader::kXForwardedFor},
    {"forwarded", ForwardingHeader::kForwarded},
}};
inline constexpr std::array<Word<HeaderFamily>, 2> kHeaderFamilies = {{
    {"x-ratelimit", HeaderFamily::kXRateLimit},
    {"ratelimit", HeaderFamily::kRateLimit},
}};
inline constexpr std::array<Word<ResetStyle>, 2> kResetStyles = {{
    {"epoch", ResetStyle::kEpoch},
    {"delta", ResetStyle::kDelta},
}};
inline constexpr std::array<Word<ManageRight>, 2> kManageRights = {{
    {"token", ManageRight::kToken},
    {"open", ManageRight::kOpen},
}};
// Who is believed.
inline constexpr std::array<Word<bool>, 2> kBelieved = {{
    {"trusted", false},
    {"anyone", true},
}};
inline constexpr std::array<Word<bool>, 2> kBools = {{
    {"true", true},
    {"false", false},
}};
// Largest first.
inline constexpr std::array<Word<std::int64_t>, 6> kSizes = {{
    {"GiB", std::int64_t{1} << 30},
    {"MiB", std::int64_t{1} << 20},
    {"KiB", std::int64_t{1} << 10},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"kB", 1'000},
}};
// The places of a request that hold values by name, as they are written before a name.
inline constexpr std::array<std::string_view, 4> kNamedPlaces = {"header", "cookie", "query",
                                                                 "descriptor"};

// The key of a rule under which all requests are counted together.
inline constexpr std::string_view kGlobalKey = "global";

// In a row of overrides, besides the attributes of the key.
inline constexpr std::string_view kOverrideLimitKey = "limit";
inline constexpr std::string_view kOverrideKeyKey = "key";  // The only attribute, whichever it is.
inline constexpr std::string_view kOverrideFileKey = "file";

}  // namespace weir
