// A file that a command was told to write: a page, a picture.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <weir/result.h>

namespace weir {

// An error if one of `outputs` is read as well, or is another of them, too: the first to be written
// would destroy what the other needs. Also if one is -, which is no name of a file. Empty names are
// none.
Result<void> CheckOutputs(const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs);

// Replaces what is there. The error has the path and the reason.
Result<void> WriteOutputFile(const std::string& path, std::string_view text);

}  // namespace weir
