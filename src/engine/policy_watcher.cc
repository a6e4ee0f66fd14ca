#include <weir/policy_watcher.h>

#include <mutex>
#include <thread>
#include <utility>

#include "engine/file_watch.h"
#include "engine/policy_reloader.h"

namespace weir {

struct PolicyWatcher::State {
  State(Engine& engine, const std::string& path, WatchOptions its_options, FileWatch its_watch)
      : options(std::move(its_options)),
        watch(std::move(its_watch)),
        reloader(engine, path, options.force) {
    watch.SetFiles(reloader.files());
  }

  void Run() {
    while (true) {
      const FileWatch::Waited waited = watch.Wait(options.poll);
      if (waited == FileWatch::Waited::kInterrupted) return;
      if (waited == FileWatch::Waited::kNothing && !LooksChanged()) continue;
      if (waited == FileWatch::Waited::kHappened && !WaitUntilQuiet()) return;
      if (!WaitUntilWritten()) return;
      const std::scoped_lock lock(mutex);
      const std::optional<ReloadEvent> event = reloader.ReloadIfChanged();
      // Links may lead elsewhere now, and the policy may name other files.
      watch.SetFiles(reloader.files());
      if (event && IsNews(*event) && options.on_event) options.on_event(*event);
    }
  }

  // That all is as it was is news to whoever was told that it is not.
  bool IsNews(const ReloadEvent& event) {
    const bool unchanged = event.outcome == ReloadEvent::Outcome::kUnchanged;
    const bool complained_before =
        std::exchange(complained, !unchanged && event.outcome != ReloadEvent::Outcome::kApplied);
    return !unchanged || complained_before;
  }

  // Without reading the files, which may be large.
  bool LooksChanged() {
    const std::scoped_lock lock(mutex);
    const std::uint64_t before = std::exchange(marks, reloader.Marks());
    return marks != before || reloader.has_complaint();
  }

  // Who never stops does not hold up the watcher for ever.
  static constexpr int kMostRounds = 20;

  // False if the watcher ends.
  bool WaitUntilQuiet() {
    for (int i = 0; i < kMostRounds; ++i) {
      const FileWatch::Waited waited = watch.Wait(options.quiet);
      if (waited == FileWatch::Waited::kInterrupted) return false;
      if (waited == FileWatch::Waited::kNothing) return true;
    }
    return true;
  }

  // Who writes slowly and keeps the file open makes no event: what is new must stay the same for a
  // while. False if the watcher ends.
  bool WaitUntilWritten() {
    std::uint64_t digest = Digest();
    for (int i = 0; i < kMostRounds && IsNew(digest); ++i) {
      if (!WaitUntilQuiet()) return false;
      if (const std::uint64_t before = std::exchange(digest, Digest()); before == digest) break;
    }
    return true;
  }
  std::uint64_t Digest() {
    const std::scoped_lock lock(mutex);
    return reloader.Digest();
  }
  bool IsNew(std::uint64_t digest) {
    const std::scoped_lock lock(mutex);
    return reloader.IsNew(digest);
  }

  const WatchOptions options;
  FileWatch watch;
  std::mutex mutex;  // Held by whoever reloads.
  PolicyReloader reloader;
  std::uint64_t marks = reloader.Marks();
  bool complained = false;
  std::thread thread;
};

PolicyWatcher::PolicyWatcher(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

PolicyWatcher::~PolicyWatcher() {
  state_->watch.Interrupt();
  state_->thread.join();
}

Result<std::unique_ptr<PolicyWatcher>> PolicyWatcher::Start(Engine& engine, const std::string& path,
                                                            WatchOptions options) {
  Result<FileWatch> watch = FileWatch::Make();
  if (!watch) return std::unexpected(watch.error());
  return std::unique_ptr<PolicyWatcher>(new PolicyWatcher(
      std::make_unique<State>(engine, path, std::move(options), *std::move(watch))));
}

ReloadEvent PolicyWatcher::Reload() {
  const std::scoped_lock lock(state_->mutex);
  ReloadEvent event = state_->reloader.Reload();
  if (state_->options.on_event) state_->options.on_event(event);
  return event;
}

}  // namespace weir
