#include "server/listener_watch.h"

#include <utility>

namespace weir {
namespace {

constexpr Duration kPoll = std::chrono::seconds(2);
// Who writes may write several files, and each in pieces.
constexpr Duration kQuiet = std::chrono::milliseconds(50);
constexpr int kMostRounds = 20;  // Who never stops does not hold this up for ever.

}  // namespace

ListenerWatch::ListenerWatch(FileWatch watch, Look look)
    : watch_(std::move(watch)), look_(std::move(look)), thread_([this] { Run(); }) {}

ListenerWatch::~ListenerWatch() {
  watch_.Interrupt();
  thread_.join();
}

Result<std::unique_ptr<ListenerWatch>> ListenerWatch::Start(Look look) {
  Result<FileWatch> watch = FileWatch::Make();
  if (!watch) return std::unexpected(watch.error());
  return std::unique_ptr<ListenerWatch>(new ListenerWatch(*std::move(watch), std::move(look)));
}

void ListenerWatch::Run() {
  while (true) {
    // Links may lead elsewhere now, and the policy may name other files.
    watch_.SetFiles(look_());
    const FileWatch::Waited waited = watch_.Wait(kPoll);
    if (waited == FileWatch::Waited::kInterrupted) return;
    if (waited == FileWatch::Waited::kHappened && !WaitUntilQuiet()) return;
  }
}

bool ListenerWatch::WaitUntilQuiet() {
  for (int i = 0; i < kMostRounds; ++i) {
    const FileWatch::Waited waited = watch_.Wait(kQuiet);
    if (waited == FileWatch::Waited::kInterrupted) return false;
    if (waited == FileWatch::Waited::kNothing) return true;
  }
  return true;
}

}  // namespace weir
