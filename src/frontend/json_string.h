// Text from anywhere as a JSON string: what must be escaped is, and bytes that are not UTF-8 become
// the replacement character, so that one odd key cannot make a whole answer unreadable.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/roomy_text.h"

namespace weir {

// The most that a text of so many bytes takes, with its quotes.
constexpr std::size_t JsonStringRoom(std::size_t bytes) { return 6 * bytes + 2; }

void PutJsonString(RoomyText& out, std::string_view text) noexcept;
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace weir
