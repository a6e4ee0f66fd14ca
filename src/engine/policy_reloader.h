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
  // What the file says counts as seen only if the engine's policy says the same.
  PolicyReloader(Engine& engine, std::string path, bool force);

  ReloadEvent Reload();
  // The same, but nothing if nothing would come of it that was not said before.
  std::optional<ReloadEvent> ReloadIfChanged();

  // What the files say now, and whether it is other than when they were last taken up. Lets a
  // caller wait until it stays the same.
  std::uint64_t Digest() const { return Read().digest; }
  bool IsNew(std::uint64_t digest) const { return digest != digest_seen_; }

  // Sizes, times and the like of the files: as long as these are the same, so are the files.
  std::uint64_t Marks() const;
  // Whether the files may be right without having changed, because one that was missing is there.
  bool has_complaint() const { return !complaint_.empty(); }

  // The policy file and those it named when it was last read, whether or not it was taken.
  const std::vector<std::string>& files() const { return files_; }

 private:
  // The contents of all files, so that a change to any of them is noticed; and of the policy file
  // alone.
  struct Snapshot {
    std::string policy_text;
    std::string why_unreadable;
    std::uint64_t digest = 0;
  };
  Snapshot Read() const;
  PolicyReport Parse(const Snapshot& seen) const;
  // All files that count if this policy does.
  std::vector<std::string> FilesOf(const Policy& policy) const;
  ReloadEvent Take(Snapshot seen);
  void Decide(PolicyReport report, const Snapshot& seen, ReloadEvent& event);
  std::vector<std::string> Suspicions(const Policy& next, const std::string& text) const;

  Engine& engine_;
  const std::string path_;
  const bool force_;
  std::vector<std::string> files_;
  std::string text_in_force_;
  std::uint64_t digest_in_force_ = 0;
  std::uint64_t digest_seen_ = 0;
  // About the files as they are; empty unless they are broken. That may be for want of a file which
  // nobody knows of yet, so they are worth another look although they have not changed.
  std::string complaint_;
};

}  // namespace weir
