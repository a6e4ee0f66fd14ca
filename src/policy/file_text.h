// A whole file as text, for files that people name: a wrong name must give an error that helps,
// and must never make the program wait.
#pragma once

#include <cstddef>
#include <string>

#include <weir/result.h>

namespace weir {

// Regular files, and links to them. More than `cap` bytes is an error. Errors have the path and the
// reason.
Result<std::string> ReadWholeFile(const std::string& path, std::size_t cap);

}  // namespace weir
