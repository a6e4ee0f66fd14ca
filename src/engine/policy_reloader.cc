#include "engine/policy_reloader.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/mix.h"
#include "policy/file_text.h"
#include "policy/yaml_tree.h"

namespace weir {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ", ") + word;
  return joined;
}

}  // namespace

std::string ReloadEvent::ToString() const {
  std::string text;
  switch (outcome) {
    case Outcome::kUnchanged:
      return "policy: the files say what they said before";
    case Outcome::kApplied:
      text = "policy: version " + std::to_string(change.version) + " is in force";
      if (!change.rules_added.empty()) text += "; new: " + Join(change.rules_added);
      if (!change.rules_removed.empty()) text += "; gone: " + Join(change.rules_removed);
      if (!change.limits_changed.empty()) text += "; changed: " + Join(change.limits_changed);
      if (!change.started_anew.empty()) text += "; start anew: " + Join(change.started_anew);
      break;
    case Outcome::kBroken:
      text = "policy: the file has errors; the policy that was in force stays";
      break;
    case Outcome::kSuspicious:
      text =
          "policy: the change looks like an accident; the policy that was in force stays "
          "(--force-reload takes it)";
      break;
  }
  for (const std::string& suspicion : suspicions) text += "\n  " + suspicion;
  for (const Problem& problem : problems) text += "\n  " + problem.ToString();
  return text;
}

PolicyReloader::PolicyReloader(Engine& engine, std::string path, bool force)
    : engine_(engine), path_(std::move(path)), force_(force), files_{path_} {
  for (const std::string& file : engine.policy().files()) files_.push_back(file);
  Snapshot now = Read(files_);
  text_in_force_ = std::move(now.policy_text);
  digest_in_force_ = digest_seen_ = now.digest;
}

PolicyReloader::Snapshot PolicyReloader::Read(const std::vector<std::string>& files) const {
  static const KeyHasher hasher(HashKind::kXxh3);
  Snapshot snapshot;
  for (const std::string& file : files) {
    Result<std::string> text = ReadWholeFile(file, kMaxFileBytes);
    snapshot.digest = Mix(snapshot.digest ^ (text ? hasher(*text) : 1));
    if (file == path_ && text) snapshot.policy_text = *std::move(text);
  }
  return snapshot;
}

std::vector<std::string> PolicyReloader::Suspicions(const Policy& next,
                                                    const std::string& text) const {
  std::vector<std::string> reasons = WhySuspicious(engine_.policy().spec(), next.spec());
  // What is left of a file whose writing was cut short may well make sense by itself.
  const bool same_rules = next.spec() == engine_.policy().spec();
  if (text.size() < text_in_force_.size() && text_in_force_.starts_with(text) && !same_rules) {
    reasons.push_back(
        "the file is the beginning of the one before, as if its writing was cut short");
  }
  return reasons;
}

ReloadEvent PolicyReloader::Reload() { return Take(Read(files_)); }

std::optional<ReloadEvent> PolicyReloader::ReloadIfChanged() {
  const Snapshot seen = Read(files_);
  if (seen.digest == digest_seen_) return std::nullopt;
  return Take(seen);
}

ReloadEvent PolicyReloader::Take(const Snapshot& seen) {
  ReloadEvent event;
  digest_seen_ = seen.digest;
  if (seen.digest == digest_in_force_) return event;
  PolicyReport report = Policy::Parse(seen.policy_text, path_);
  event.problems = std::move(report.problems);
  if (!report.policy) {
    event.outcome = ReloadEvent::Outcome::kBroken;
    return event;
  }
  event.suspicions = Suspicions(*report.policy, seen.policy_text);
  if (!event.suspicions.empty() && !force_) {
    event.outcome = ReloadEvent::Outcome::kSuspicious;
    return event;
  }
  event.outcome = ReloadEvent::Outcome::kApplied;
  event.change = engine_.Apply(*report.policy);
  text_in_force_ = seen.policy_text;
  std::vector<std::string> files = {path_};
  for (const std::string& file : report.policy->files()) files.push_back(file);
  // Files that were not among those seen may have changed since they were read: they count as
  // changed, and are looked at once more.
  const bool same_files = files == files_;
  files_ = std::move(files);
  digest_in_force_ = digest_seen_ = same_files ? seen.digest : 0;
  return event;
}

}  // namespace weir
