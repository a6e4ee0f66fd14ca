// Keeps an engine's policy the one that its file says, while traffic flows.
//
//   auto watcher = weir::PolicyWatcher::Start(engine, "weir.yaml", {.on_event = Log});
//
// The file and the files of overrides it names may be written in place, replaced by renaming, or
// reached through symbolic links that are swapped. A file that cannot be used, or whose change
// looks like an accident, changes nothing: the policy that was in force stays, and the event says
// why.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weir/engine.h>
#include <weir/policy.h>
#include <weir/result.h>
#include <weir/time.h>

namespace weir {

struct ReloadEvent {
  enum class Outcome : std::uint8_t {
    kApplied,     // The new policy is in force.
    kUnchanged,   // It was asked for, but the files say what they said before.
    kBroken,      // It has errors, or names something that cannot be used.
    kSuspicious,  // It looks like an accident; WatchOptions::force would take it.
  };
  Outcome outcome = Outcome::kUnchanged;
  std::vector<Problem> problems{};        // Errors, or the advice on a policy that was applied.
  std::vector<std::string> suspicions{};  // kSuspicious: why.
  std::string unusable{};                 // kBroken, without errors: what, and why.
  PolicyChange change{};                  // kApplied.

  // One or several lines for a log.
  std::string ToString() const;
};

struct WatchOptions {
  // Called for every attempt that changes something or fails, and when all is as before after one
  // that failed; by Reload always. From the watcher's thread or the one that called Reload. May use
  // the engine, but neither reload nor end the watcher, nor throw.
  std::function<void(const ReloadEvent&)> on_event{};
  // Takes what looks like an accident, too.
  bool force = false;
  // A file is read when nothing has happened to it for this long: who writes it may write in
  // pieces.
  Duration quiet = std::chrono::milliseconds(50);
  // How often to look even without being told: not every file system tells.
  Duration poll = std::chrono::seconds(2);
};

// Has a thread of its own. May be used from any thread.
class PolicyWatcher {
 public:
  // The engine must outlive the watcher. If the file no longer says what the engine's policy does,
  // that is taken up first of all.
  [[nodiscard]] static Result<std::unique_ptr<PolicyWatcher>> Start(Engine& engine,
                                                                    const std::string& path,
                                                                    WatchOptions options = {});
  PolicyWatcher(const PolicyWatcher&) = delete;
  PolicyWatcher& operator=(const PolicyWatcher&) = delete;
  ~PolicyWatcher();

  // Reads the files now, as on SIGHUP. What came of it.
  ReloadEvent Reload();

 private:
  struct State;
  explicit PolicyWatcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir
