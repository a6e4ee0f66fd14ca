// Watches the files that listeners read, so that what is replaced is taken up: certificates, keys,
// tokens.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weir/result.h>

#include "engine/file_watch.h"

namespace weir {

// Has a thread of its own.
class ListenerWatch {
 public:
  // Called when files may have changed, and every two seconds: not every file system tells. Says
  // which files there are by now.
  using Look = std::function<std::vector<std::string>()>;
  [[nodiscard]] static Result<std::unique_ptr<ListenerWatch>> Start(Look look);
  ListenerWatch(const ListenerWatch&) = delete;
  ListenerWatch& operator=(const ListenerWatch&) = delete;
  ~ListenerWatch();

 private:
  ListenerWatch(FileWatch watch, Look look);
  void Run();
  // False if the watch ends.
  bool WaitUntilQuiet();

  FileWatch watch_;
  const Look look_;
  std::thread thread_;
};

}  // namespace weir
