#include "engine/file_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

namespace weir {
namespace {

namespace fs = std::filesystem;

// What may make a file another one. Not every single write: those who write say when they are done.
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE |
                                  IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB;

constexpr int kMostLinks = 40;  // As many as the kernel follows.

void AddFoldersOf(const fs::path& file, int links_left, std::set<std::string>& folders) {
  std::error_code error;
  const fs::path absolute = fs::absolute(file, error);
  if (error) return;
  fs::path at = absolute.root_path();
  const fs::path relative = absolute.relative_path();
  for (auto step = relative.begin(); step != relative.end(); ++step) {
    const fs::path next = at / *step;
    if (fs::is_symlink(fs::symlink_status(next, error)) && links_left > 0) {
      folders.insert(at.string());
      // The rest of the way goes on behind the link.
      fs::path target = at / fs::read_symlink(next, error);
      for (auto rest = std::next(step); rest != relative.end(); ++rest) target /= *rest;
      return AddFoldersOf(target, links_left - 1, folders);
    }
    at = next;
  }
  folders.insert(absolute.parent_path().string());
}

}  // namespace

std::set<std::string> FoldersOf(const std::vector<std::string>& files) {
  std::set<std::string> folders;
  for (const std::string& file : files) AddFoldersOf(file, kMostLinks, folders);
  return folders;
}

Result<FileWatch> FileWatch::Make() {
  const int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (inotify >= 0 && event >= 0) return FileWatch(inotify, event);
  const std::string why = std::generic_category().message(errno);
  if (inotify >= 0) close(inotify);
  if (event >= 0) close(event);
  return std::unexpected(Error{ErrorCode::kInternal, "files cannot be watched: " + why});
}

FileWatch::FileWatch(FileWatch&& other) noexcept
    : inotify_(std::exchange(other.inotify_, -1)),
      event_(std::exchange(other.event_, -1)),
      watches_(std::move(other.watches_)),
      folders_(std::move(other.folders_)) {}

FileWatch::~FileWatch() {
  if (inotify_ >= 0) close(inotify_);
  if (event_ >= 0) close(event_);
}

void FileWatch::SetFiles(const std::vector<std::string>& files) {
  std::set<std::string> folders = FoldersOf(files);
  std::vector<int> watches;
  for (const std::string& folder : folders) {
    const int watch = inotify_add_watch(inotify_, folder.c_str(), kEvents | IN_ONLYDIR);
    if (watch >= 0) watches.push_back(watch);
  }
  for (const int watch : watches_) {
    if (std::ranges::find(watches, watch) == watches.end()) inotify_rm_watch(inotify_, watch);
  }
  watches_ = std::move(watches);
  folders_ = std::move(folders);
}

FileWatch::Waited FileWatch::Wait(Duration at_most) {
  std::array<pollfd, 2> ready = {{{.fd = inotify_, .events = POLLIN, .revents = 0},
                                  {.fd = event_, .events = POLLIN, .revents = 0}}};
  constexpr std::int64_t kLongest =
      3'600'000;  // poll takes an int, and a negative one as for ever.
  const auto timeout = static_cast<int>(
      std::clamp<std::int64_t>(RoundUpTo<std::chrono::milliseconds>(at_most), 0, kLongest));
  if (poll(ready.data(), ready.size(), timeout) <= 0) return Waited::kNothing;
  if (ready[1].revents != 0) return Waited::kInterrupted;
  Drain();
  return Waited::kHappened;
}

void FileWatch::Interrupt() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);
}

void FileWatch::Drain() const {
  alignas(inotify_event) std::array<char, 4096> buffer;
  while (read(inotify_, buffer.data(), buffer.size()) > 0) {
  }
}

}  // namespace weir
