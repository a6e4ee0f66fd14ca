// Text from anywhere, made fit to be shown. Keys come from logs, so whoever sends requests writes
// them: nothing in them may move a cursor, turn the direction of a line, or break a page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::lab {

enum class Lines : bool { kOne, kMany };

// Always UTF-8: bytes that are not become U+FFFD. What cannot be seen is written out ("\x1b",
// "\u202e"); of that, ends of lines and tabs stay where there may be many lines.
std::string ShownText(std::string_view text, Lines lines = Lines::kOne);

// How many columns of a terminal shown text takes: some characters take two, some none.
std::size_t DisplayWidth(std::string_view text);
// At most so many columns; what had to be cut off is an ellipsis.
std::string CutTo(std::string_view text, std::size_t width);
// Shown text in lines of at most so many columns, broken at spaces where there are any. Lines
// that are there stay.
std::string Wrapped(std::string_view text, std::size_t width, std::string_view indent);

}  // namespace weir::lab
