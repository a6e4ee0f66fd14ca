// Reads a policy's files again and decides whether what they say should take effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weir/engine.h>
#include <weir/policy_watcher.h>

namespace weir {

// Not thread-safe.
class PolicyReloader {
 public:
  // The engine's policy is taken for what the file says now.
  PolicyReloader(Engine& engine, std::string path, bool force);

  ReloadEvent Reload();
  // The same, but nothing if the files are as they were when they were last read.
  std::optional<ReloadEvent> ReloadIfChanged();

  // The policy file and those it named when it was last read, whether or not it was taken.
  const std::vector<std::string>& files() const { return files_; }

 private:
  // The contents of all files, so that a change to any of them is noticed; and of the policy file
  // alone.
  struct Snapshot {
    std::string policy_text;
    std::uint64_t digest = 0;
  };
  Snapshot Read(const std::vector<std::string>& files) const;
  ReloadEvent Take(const Snapshot& seen);
  std::vector<std::string> Suspicions(const Policy& next, const std::string& text) const;

  Engine& engine_;
  const std::string path_;
  const bool force_;
  std::vector<std::string> files_;
  std::string text_in_force_;
  std::uint64_t digest_in_force_ = 0;
  std::uint64_t digest_seen_ = 0;
};

}  // namespace weir
