#include "policy/file_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace weir {
namespace {

Error Failed(const std::string& path, ErrorCode code, const std::string& reason) {
  return {code, path + ": " + reason};
}

Error FailedWith(const std::string& path, int error) {
  ErrorCode code = ErrorCode::kInternal;
  if (error == ENOENT || error == ENOTDIR) code = ErrorCode::kNotFound;
  if (error == EACCES || error == EPERM) code = ErrorCode::kForbidden;
  if (error == ELOOP || error == ENAMETOOLONG || error == ENXIO) code = ErrorCode::kInvalidArgument;
  return Failed(path, code, std::generic_category().message(error));
}

Error TooLarge(const std::string& path, std::size_t cap) {
  return Failed(path, ErrorCode::kTooLarge,
                "larger than the " + std::to_string(cap) + " bytes that are allowed");
}

class OpenFile {
 public:
  // Not blocking: a FIFO would wait for somebody to write.
  explicit OpenFile(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool ok() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

struct Piece {
  std::size_t bytes = 0;
  int error = 0;  // As in errno.
};

// Fewer bytes than `most` only at the end of the file, or if there is an error.
Piece Read(int descriptor, char* to, std::size_t most) {
  Piece piece;
  while (piece.bytes < most) {
    const ssize_t got = read(descriptor, to + piece.bytes, most - piece.bytes);
    if (got == 0) break;
    if (got > 0) piece.bytes += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) {
      piece.error = errno;
      break;
    }
  }
  return piece;
}

// The file behind the descriptor, which says that it has `size` bytes.
Result<std::string> ReadToEnd(int descriptor, std::size_t size, const std::string& path,
                              std::size_t cap) {
  constexpr std::size_t kMore = std::size_t{64} << 10;
  std::string text;
  // One byte more than there should be tells whether it ends there: it may have grown, and some
  // files say they have no bytes at all.
  std::size_t most = size + 1;
  while (true) {
    const std::size_t before = text.size();
    Piece piece;
    text.resize_and_overwrite(before + most, [&](char* data, std::size_t) noexcept {
      piece = Read(descriptor, data + before, most);
      return before + piece.bytes;
    });
    if (piece.error != 0) return std::unexpected(FailedWith(path, piece.error));
    if (text.size() > cap) return std::unexpected(TooLarge(path, cap));
    if (piece.bytes < most) return text;
    most = std::min(kMore, cap + 1 - text.size());
  }
}

}  // namespace

Result<std::string> ReadWholeFile(const std::string& path, std::size_t cap) {
  if (path.empty()) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, "the name of the file is empty"});
  }
  if (path.contains('\0')) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, "the name of the file holds a NUL"});
  }
  const OpenFile file(path);
  struct stat about = {};
  if (!file.ok() || fstat(file.descriptor(), &about) != 0) {
    return std::unexpected(FailedWith(path, errno));
  }
  if (!S_ISREG(about.st_mode)) {
    return std::unexpected(
        Failed(path, ErrorCode::kInvalidArgument,
               S_ISDIR(about.st_mode) ? "is a directory, not a file" : "is not a regular file"));
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size > cap) return std::unexpected(TooLarge(path, cap));
  return ReadToEnd(file.descriptor(), size, path, cap);
}

}  // namespace weir
