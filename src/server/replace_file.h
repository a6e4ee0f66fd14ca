// Changes a file as a whole: whoever reads it sees the old text or the new one, never a part.
#pragma once

#include <string>
#include <string_view>

#include <weir/result.h>

namespace weir {

// Through a file beside it that takes its place. A symbolic link stays, and what it leads to is
// replaced; mode bits stay. A file that may not be written is left alone.
Result<void> ReplaceFile(const std::string& path, std::string_view text);

// What was renamed in a file's folder stays so even if the machine fails. A folder that cannot be
// opened is left alone.
void SyncFolderOf(const std::string& path);

}  // namespace weir
