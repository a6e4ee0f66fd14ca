// A policy: all rules, checked and compiled, ready for an engine.
//
//   weir::PolicyReport report = weir::Policy::Load("weir.yaml");
//   for (const weir::Problem& problem : report.problems) std::puts(problem.ToString().c_str());
//   if (!report.policy) return 1;
//   auto engine = weir::Engine::Make(*report.policy);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/result.h>

namespace weir {

enum class Severity : std::uint8_t {
  kError,   // The policy cannot be used.
  kAdvice,  // It can, but experience says that it will not do what was meant.
};

// Something wrong with a policy, where it is, and what to do about it.
struct Problem {
  std::string code;  // E001 to E099 syntax, E100 on meaning, W100 on advice: never given twice.
  Severity severity = Severity::kError;
  std::string file;  // Empty for a policy made in code,
  int line = 0;      // which has no lines either: they count from 1.
  int column = 0;
  std::string where;    // rules[2].match.path
  std::string message;  // What is wrong, and what to write instead.

  // file:line:column: E101 message
  std::string ToString() const;
};

struct PolicyReport;
class CompiledPolicy;

// Immutable, cheap to copy, safe to share between threads.
class Policy {
 public:
  // All problems at once; a policy only if none of them is an error. Files that the policy names
  // are looked for beside the policy file, or in the working directory.
  [[nodiscard]] static PolicyReport Load(const std::string& path);
  [[nodiscard]] static PolicyReport Parse(std::string_view yaml, const std::string& file_name = "");
  [[nodiscard]] static PolicyReport Make(PolicySpec spec);

  const PolicySpec& spec() const noexcept;
  // The files that it names and that count as part of it, as paths that can be opened: those of
  // overrides, and those of its store's passwords and certificates.
  const std::vector<std::string>& files() const noexcept;
  const CompiledPolicy& compiled() const noexcept { return *compiled_; }

 private:
  explicit Policy(std::shared_ptr<const CompiledPolicy> compiled)
      : compiled_(std::move(compiled)) {}
  std::shared_ptr<const CompiledPolicy> compiled_;
};

struct PolicyReport {
  std::optional<Policy> policy{};
  std::vector<Problem> problems{};
};

// The policy as a file that Policy::Parse reads back to the same spec. What is as by default is
// left out. That holds for every spec that Policy::Make accepts, which must be UTF-8 throughout
// (control characters are written as escapes), but for two tests of one attribute in a match: a map
// has each key once, so the second becomes a match in `all`.
std::string ToYaml(const PolicySpec& spec);

// Why going over from one policy to another looks like a mistake: no rules any more, ten times
// fewer, or a limit cut to less than a tenth. Empty if it does not.
std::vector<std::string> WhySuspicious(const PolicySpec& before, const PolicySpec& after);

}  // namespace weir
