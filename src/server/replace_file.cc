#include "server/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace weir {
namespace {

std::unexpected<Error> Failure(const std::string& path, const char* what, int error = errno) {
  const std::string reason = std::generic_category().message(error);
  return std::unexpected(Error{ErrorCode::kInternal, path + ": " + what + ": " + reason});
}

// A file that is not there any more when this ends, unless it has taken the place of another.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& beside) : path_(beside + ".XXXXXX") {
    descriptor_ = mkostemp(path_.data(), O_CLOEXEC);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    if (!path_.empty()) unlink(path_.c_str());
  }

  bool made() const { return descriptor_ >= 0; }

  // To the disk, so that a crash after the renaming does not leave an empty file.
  bool Write(std::string_view text, const struct stat& like) {
    while (!text.empty()) {
      const ssize_t written = write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    // Only root may give a file away; for everybody else it stays with whoever formats it.
    if (fchown(descriptor_, like.st_uid, like.st_gid) != 0 && errno != EPERM) return false;
    return fchmod(descriptor_, like.st_mode & 07777) == 0 && fsync(descriptor_) == 0;
  }

  bool RenameTo(const std::string& target) {
    if (rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace

Result<void> ReplaceFile(const std::string& path, std::string_view text) {
  std::error_code error;
  const std::string target = std::filesystem::canonical(path, error).string();
  if (error) return Failure(path, "cannot be found", error.value());
  struct stat status{};
  if (stat(target.c_str(), &status) != 0) return Failure(path, "cannot be read");
  if (access(target.c_str(), W_OK) != 0) return Failure(path, "cannot be written");
  TemporaryFile temporary(target);
  if (!temporary.made()) return Failure(path, "no file can be made beside it");
  if (!temporary.Write(text, status)) return Failure(path, "cannot be written");
  if (!temporary.RenameTo(target)) return Failure(path, "cannot be replaced");
  SyncFolderOf(target);
  return {};
}

void SyncFolderOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace weir
