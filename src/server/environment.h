// What whoever started this process has written into its environment for it, and for it alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

// The value, taken out of the environment, so that no other process takes it for its own. Empty if
// there is none. Before any thread is made: others may be reading the environment.
std::string TakeVariable(const char* name);

// Digits and nothing else; none if it is something else, or too large.
std::optional<std::uint64_t> ParseNumber(std::string_view text) noexcept;

// Whether a variable that names a process means this one.
bool IsThisProcess(std::string_view pid) noexcept;

}  // namespace weir
