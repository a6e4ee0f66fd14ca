#include "server/output_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace weir {
namespace {

// Files only: what a device takes is gone, and what a pipe takes nobody reads twice.
bool IsSameFile(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  if (!std::filesystem::exists(a, error)) {
    // However it is written, it would be one once it is there.
    return std::filesystem::weakly_canonical(a, error) ==
           std::filesystem::weakly_canonical(b, error);
  }
  return std::filesystem::is_regular_file(a, error) && std::filesystem::equivalent(a, b, error) &&
         !error;
}

}  // namespace

Result<void> CheckOutputs(const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  const auto wrong = [](const std::string& message) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, message});
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& output = outputs[i];
    if (output == "-") return wrong("-: write the name of a file to be written");
    const auto same = [&](const std::string& other) { return IsSameFile(output, other); };
    if (std::ranges::any_of(inputs, same)) {
      return wrong(output + ": it is read, and would be overwritten");
    }
    if (std::any_of(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      return wrong(output + ": it would be written twice");
    }
  }
  return {};
}

Result<void> WriteOutputFile(const std::string& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file) return {};
  const std::string reason = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  return std::unexpected(Error{ErrorCode::kInternal, path + ": cannot be written" + reason});
}

}  // namespace weir
