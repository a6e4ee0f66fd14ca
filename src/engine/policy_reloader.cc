#include "engine/policy_reloader.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/mix.h"
#include "limit/limit_words.h"
#include "policy/compiled_policy.h"
#include "policy/file_text.h"
#include "policy/problems.h"

namespace weir {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ", ") + word;
  return joined;
}

// A file of overrides that was cut short looks like one with fewer rows.
void FindLostOverrides(const Policy& before, const Policy& after,
                       std::vector<std::string>& reasons) {
  constexpr std::size_t kFewer = 10;
  const auto count = [](const CompiledRule& rule) {
    return rule.overrides == nullptr ? 0 : rule.overrides->size();
  };
  std::unordered_map<std::string_view, std::size_t> counts;
  for (const CompiledRule& rule : before.compiled().rules) counts.emplace(rule.name, count(rule));
  for (const CompiledRule& rule : after.compiled().rules) {
    const auto found = counts.find(rule.name);
    if (found == counts.end() || found->second < kFewer) continue;
    if (count(rule) * kFewer > found->second) continue;
    reasons.push_back("the rule " + Quoted(rule.name) + " has only " + std::to_string(count(rule)) +
                      " overrides, and had " + std::to_string(found->second));
  }
}

}  // namespace

std::string ReloadEvent::ToString() const {
  std::string text;
  switch (outcome) {
    case Outcome::kUnchanged:
      return "policy: the files say what is in force already";
    case Outcome::kApplied:
      text = "policy: version " + std::to_string(change.version) + " is in force";
      if (!change.rules_added.empty()) text += "; new: " + Join(change.rules_added);
      if (!change.rules_removed.empty()) text += "; gone: " + Join(change.rules_removed);
      if (!change.rules_changed.empty()) text += "; changed: " + Join(change.rules_changed);
      if (!change.limits_changed.empty()) text += "; limits: " + Join(change.limits_changed);
      if (!change.started_anew.empty()) text += "; start anew: " + Join(change.started_anew);
      if (change.store_changed)
        text += "; another store: what keys have used in the one before does not count there";
      break;
    case Outcome::kBroken:
      text =
          unusable.empty()
              ? "policy: the file has errors; the policy that was in force stays"
              : "policy: it cannot be taken up; the policy that was in force stays\n  " + unusable;
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
    : engine_(engine), path_(std::move(path)), force_(force), files_(FilesOf(engine.policy())) {
  Snapshot now = Read();
  // The file may have changed since the engine's policy was read from it.
  const PolicyReport report = Parse(now);
  if (!report.policy || report.policy->spec() != engine.policy().spec()) return;
  text_in_force_ = std::move(now.policy_text);
  digest_in_force_ = digest_seen_ = now.digest;
}

std::vector<std::string> PolicyReloader::FilesOf(const Policy& policy) const {
  std::vector<std::string> files = {path_};
  for (const std::string& file : policy.files()) {
    if (std::ranges::find(files, file) == files.end()) files.push_back(file);
  }
  return files;
}

PolicyReloader::Snapshot PolicyReloader::Read() const {
  static const KeyHasher kHasher(HashKind::kXxh3);
  Snapshot snapshot;
  for (const std::string& file : files_) {
    Result<std::string> text = ReadWholeFile(file, kMaxFileBytes);
    snapshot.digest = Mix(snapshot.digest ^ (text ? kHasher(*text) : 1));
    if (file != path_) continue;
    if (text) {
      snapshot.policy_text = *std::move(text);
    } else {
      snapshot.why_unreadable = text.error().message;
    }
  }
  return snapshot;
}

std::uint64_t PolicyReloader::Marks() const {
  std::uint64_t marks = 0;
  const auto add = [&](auto value) { marks = Mix(marks ^ static_cast<std::uint64_t>(value)); };
  for (const std::string& file : files_) {
    struct stat found{};
    if (stat(file.c_str(), &found) != 0) {
      add(1);
      continue;
    }
    add(found.st_dev);
    add(found.st_ino);
    add(found.st_size);
    for (const timespec& time : {found.st_mtim, found.st_ctim}) {
      add(time.tv_sec);
      add(time.tv_nsec);
    }
  }
  return marks;
}

PolicyReport PolicyReloader::Parse(const Snapshot& seen) const {
  if (seen.why_unreadable.empty()) return Policy::Parse(seen.policy_text, path_);
  ProblemList problems(path_);
  problems.AddAt(ProblemCode::kUnreadable, path_, {.line = 1, .column = 1}, "",
                 seen.why_unreadable);
  return {.policy = std::nullopt, .problems = problems.Take()};
}

std::vector<std::string> PolicyReloader::Suspicions(const Policy& next,
                                                    const std::string& text) const {
  const Policy in_force = engine_.policy();
  std::vector<std::string> reasons = WhySuspicious(in_force.spec(), next.spec());
  FindLostOverrides(in_force, next, reasons);
  // What is left of a file whose writing was cut short may well make sense by itself.
  const bool same_rules = next.spec() == engine_.policy().spec();
  if (text.size() < text_in_force_.size() && text_in_force_.starts_with(text) && !same_rules) {
    reasons.emplace_back(
        "the file is the beginning of the one before, as if its writing was cut short");
  }
  return reasons;
}

ReloadEvent PolicyReloader::Reload() { return Take(Read()); }

std::optional<ReloadEvent> PolicyReloader::ReloadIfChanged() {
  Snapshot seen = Read();
  const bool is_new = IsNew(seen.digest);
  if (!is_new && complaint_.empty()) return std::nullopt;
  const std::string complaint = complaint_;
  ReloadEvent event = Take(std::move(seen));
  if (!is_new && complaint_ == complaint) return std::nullopt;
  return event;
}

ReloadEvent PolicyReloader::Take(Snapshot seen) {
  ReloadEvent event;
  complaint_.clear();
  // Only a policy that was read says which files count. Of those that were not among the files seen
  // nobody knows what they held when it was made, so everything is read again.
  constexpr int kMostRounds = 3;
  for (int round = 1;; ++round) {
    digest_seen_ = seen.digest;
    if (seen.digest == digest_in_force_) return event;
    PolicyReport report = Parse(seen);
    std::vector<std::string> files = report.policy ? FilesOf(*report.policy) : files_;
    if (files == files_ || round == kMostRounds) {
      Decide(std::move(report), seen, event);
      return event;
    }
    files_ = std::move(files);
    seen = Read();
  }
}

void PolicyReloader::Decide(PolicyReport report, const Snapshot& seen, ReloadEvent& event) {
  event.problems = std::move(report.problems);
  if (!report.policy) {
    event.outcome = ReloadEvent::Outcome::kBroken;
    complaint_ = event.ToString();
    return;
  }
  event.suspicions = Suspicions(*report.policy, seen.policy_text);
  if (!event.suspicions.empty() && !force_) {
    event.outcome = ReloadEvent::Outcome::kSuspicious;
    return;
  }
  Result<PolicyChange> change = engine_.Apply(*report.policy);
  if (!change) {
    event.outcome = ReloadEvent::Outcome::kBroken;
    event.unusable = std::move(change.error().message);
    complaint_ = event.ToString();
    return;
  }
  event.outcome = ReloadEvent::Outcome::kApplied;
  event.change = *std::move(change);
  text_in_force_ = seen.policy_text;
  digest_in_force_ = seen.digest;
}

}  // namespace weir
