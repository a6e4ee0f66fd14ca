#include "store/endpoint_report.h"

#include <utility>

namespace weir {
namespace {

constexpr std::array<std::string_view, kStoreFaults> kNames{
    "timeout",  "refused",     "lost",         "overload",  "breaker",
    "protocol", "credentials", "read_only",    "no_memory", "not_writable",
    "loading",  "busy",        "cluster_down", "corrupt",   "other",
};
static_assert(std::to_underlying(StoreFault::kOther) + 1 == kStoreFaults);

}  // namespace

std::string_view NameOf(StoreFault fault) noexcept { return kNames[std::to_underlying(fault)]; }

}  // namespace weir
