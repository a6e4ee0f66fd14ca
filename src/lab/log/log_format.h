// Finds out how the lines of a log are to be read, from how it begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <weir/result.h>

#include "lab/log/line_parser.h"

namespace weir::lab {

struct FormatFound {
  std::unique_ptr<LineFormat> format{};
  std::string name{};               // As it is told: "empty" if there are no lines.
  std::size_t heading_lines = 0;    // So many lines from the first on are no requests,
  std::uint64_t heading_block = 0;  // in the block of this number.
};

// `begins` is how the file begins, with kLinePadding bytes behind it; `is_all` if that is all of
// it. `format` is a name, or auto: that which most of the lines have. Errors name the file; one
// that is kNotFound says that there is nothing to tell it from, and what follows may have it.
struct FormatQuestion {
  std::string file{};
  std::string_view begins{};
  bool is_all = false;
  std::string format = "auto";
};
Result<FormatFound> FindFormat(const FormatQuestion& question, const ColumnNames& names);

// What some programs write in front of a text to say that it is UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace weir::lab
