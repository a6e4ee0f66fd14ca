#include "server/snapshot_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "policy/compiled_policy.h"
#include "policy/policy_compiler.h"
#include "server/replace_file.h"

namespace weir {
namespace {

constexpr int kMostAside = 5;

// It is not what it should be.
std::unexpected<Error> Wrong(const std::string& path, const std::string& what) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, path + ": " + what});
}
// The machine would not.
std::unexpected<Error> SystemFailure(const std::string& path, const char* what, int error = errno) {
  return std::unexpected(Error{ErrorCode::kInternal,
                               path + ": " + what + ": " + std::generic_category().message(error)});
}

// Closed when this ends.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string FolderOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Whose folder it is: root may look after the state of another.
uid_t OwnerOfFolder(const std::string& path) {
  struct stat status{};
  return stat(FolderOf(path).c_str(), &status) == 0 ? status.st_uid : geteuid();
}

bool MayHaveWritten(uid_t user, const std::string& path) {
  return user == geteuid() || user == 0 || (geteuid() == 0 && user == OwnerOfFolder(path));
}

// What is wrong with the file as such, or nothing.
std::string WhyNotBelieved(const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return "is a folder; name a file in it";
  if (!S_ISREG(status.st_mode)) return "is no regular file";
  if (!MayHaveWritten(status.st_uid, path)) {
    return "belongs to user " + std::to_string(status.st_uid) + ", and is not believed";
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return "may be written by others than its owner, and is not believed";
  }
  return "";
}

// Never waits, whatever is there, and follows no link.
Result<OpenFile> OpenToRead(const std::string& path, struct stat& status) {
  OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    if (errno == ELOOP) return Wrong(path, "is a symbolic link; name the file itself");
    return SystemFailure(path, "cannot be opened");
  }
  if (fstat(file.get(), &status) != 0) return SystemFailure(path, "cannot be read");
  if (const std::string why = WhyNotBelieved(path, status); !why.empty()) return Wrong(path, why);
  return file;
}

Result<std::size_t> ReadSome(const OpenFile& file, const std::string& path,
                             std::span<std::byte> bytes) {
  while (true) {
    const ssize_t got = read(file.get(), bytes.data(), bytes.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return SystemFailure(path, "cannot be read");
  }
}

Result<void> WriteAll(const OpenFile& file, const std::string& path,
                      std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemFailure(path, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

// To the disk, so that a crash after the renaming does not leave an empty file.
Result<SnapshotReport> WriteNew(Engine& engine, const std::string& path) {
  // What a process left here that ended while it wrote.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return SystemFailure(path, "is in the way");
  constexpr int kMode = S_IRUSR | S_IWUSR;
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (!file.is_open()) return SystemFailure(path, "cannot be made");
  // For those who will read it when root is done with it; where root may not even do that, it is
  // root who reads it again.
  if (geteuid() == 0) {
    std::ignore = fchown(file.get(), OwnerOfFolder(path), static_cast<gid_t>(-1));
  }
  Result<SnapshotReport> report =
      engine.Save([&](std::span<const std::byte> bytes) { return WriteAll(file, path, bytes); });
  if (report && fsync(file.get()) != 0) return SystemFailure(path, "cannot be written");
  return report;
}

}  // namespace

std::string SnapshotPath(const Policy& policy) {
  const std::string& file = policy.spec().memory.snapshot;
  if (file.empty() || HasSharedStore(policy.spec())) return "";
  return PathIn(policy.compiled().folder, file);
}

Result<std::optional<ReadSnapshot>> LoadSnapshot(const std::string& path, const Policy& policy,
                                                 const EngineOptions& options) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0 && errno == ENOENT) return std::nullopt;
  const Result<OpenFile> file = OpenToRead(path, status);
  if (!file) return std::unexpected(file.error());
  Result<LoadedEngine> loaded = Engine::Load(
      policy, [&](std::span<std::byte> bytes) { return ReadSome(*file, path, bytes); }, options);
  if (!loaded && loaded.error().code == ErrorCode::kInternal) {
    return std::unexpected(std::move(loaded.error()));  // Of reading; it names the file.
  }
  if (!loaded) return Wrong(path, loaded.error().message);
  return ReadSnapshot{.loaded = *std::move(loaded),
                      .seen_by_others = (status.st_mode & (S_IRGRP | S_IROTH)) != 0};
}

Result<SnapshotReport> SaveSnapshot(Engine& engine, const std::string& path) {
  const std::string temporary = path + ".new";
  Result<SnapshotReport> report = WriteNew(engine, temporary);
  if (report && rename(temporary.c_str(), path.c_str()) != 0) {
    report = SystemFailure(path, "cannot be replaced");
  }
  if (!report) {
    unlink(temporary.c_str());
    return report;
  }
  SyncFolderOf(path);
  return report;
}

Result<std::string> SetSnapshotAside(const std::string& path) {
  struct stat status{};
  if (lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Wrong(path, "is a folder, and stays where it is");
  }
  for (int number = 1; number <= kMostAside; ++number) {
    std::string aside = path + ".bad" + (number == 1 ? "" : "." + std::to_string(number));
    if (lstat(aside.c_str(), &status) == 0) continue;
    if (errno != ENOENT) return SystemFailure(aside, "cannot be looked at");
    if (rename(path.c_str(), aside.c_str()) != 0) return SystemFailure(path, "cannot be set aside");
    return aside;
  }
  return Wrong(path, "stays where it is until the next takes its place: " +
                         std::to_string(kMostAside) + " were set aside before it; look at " + path +
                         ".bad and the others, and remove them");
}

Result<void> CheckRoomForSnapshot(const std::string& path) {
  const std::string folder = FolderOf(path);
  // A file without a name: nobody ever sees it.
  const OpenFile probe(open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (probe.is_open()) return {};
  const bool is_unknown = errno == EOPNOTSUPP || errno == EISDIR;  // To this file system.
  if (is_unknown && access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return SystemFailure(path, "no file can be made beside it");
}

Result<void> CheckSnapshot(const Policy& policy) {
  const std::string path = SnapshotPath(policy);
  if (path.empty()) return {};
  const auto snapshot = LoadSnapshot(path, policy, {});
  if (!snapshot) return std::unexpected(snapshot.error());
  return CheckRoomForSnapshot(path);
}

}  // namespace weir
