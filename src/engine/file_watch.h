// Tells when something has happened to certain files, whichever way they are written or reached.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <weir/result.h>
#include <weir/time.h>

namespace weir {

// The folders in which something must happen for one of the files to become another: that of the
// file, and that of every symbolic link on the way to it.
std::set<std::string> FoldersOf(const std::vector<std::string>& files);

// For one thread; only Interrupt may be called from others.
class FileWatch {
 public:
  static Result<FileWatch> Make();
  FileWatch(FileWatch&& other) noexcept;
  FileWatch& operator=(FileWatch&&) = delete;
  ~FileWatch();

  // From now on these. Links are followed as they are now.
  void SetFiles(const std::vector<std::string>& files);

  enum class Waited : std::uint8_t { kHappened, kNothing, kInterrupted };
  // Waits until something happens to one of them, at most so long.
  Waited Wait(Duration at_most);
  // Ends the Wait that is under way, or the next one.
  void Interrupt();

 private:
  FileWatch(int inotify, int event) : inotify_(inotify), event_(event) {}
  void Drain() const;

  int inotify_;
  int event_;
  std::vector<int> watches_;
  std::set<std::string> folders_;
};

}  // namespace weir
