#include <weir/policy.h>

#include <filesystem>
#include <utility>

#include "policy/compiled_policy.h"
#include "policy/file_text.h"
#include "policy/policy_compiler.h"
#include "policy/policy_reader.h"
#include "policy/problems.h"
#include "policy/yaml_tree.h"

namespace weir {
PolicyReport Policy::Make(PolicySpec spec) {
  ProblemList problems("");
  PolicyReport report;
  if (auto compiled = CompilePolicy(std::move(spec), "", problems)) {
    report.policy = Policy(std::move(compiled));
  }
  report.problems = problems.Take();
  return report;
}

PolicyReport Policy::Parse(std::string_view yaml, const std::string& file_name) {
  ProblemList problems(file_name);
  PolicyReport report;
  const YamlReport read = ReadYaml(yaml);
  for (const YamlProblem& problem : read.problems) {
    problems.AddAt(CodeFor(problem.kind), file_name, problem.place, "", problem.message);
  }
  if (read.root) {
    problems.SetTree(&*read.root);
    const std::string folder = std::filesystem::path(file_name).parent_path().string();
    PolicySpec spec = ReadPolicy(*read.root, problems);
    if (auto compiled = CompilePolicy(std::move(spec), folder, problems)) {
      report.policy = Policy(std::move(compiled));
    }
  }
  report.problems = problems.Take();
  return report;
}

PolicyReport Policy::Load(const std::string& path) {
  const Result<std::string> text = ReadWholeFile(path, kMaxYamlBytes);
  if (text) return Parse(*text, path);
  ProblemList problems(path);
  problems.AddAt(ProblemCode::kUnreadable, path, {.line = 1, .column = 1}, "",
                 text.error().message);
  return {.policy = std::nullopt, .problems = problems.Take()};
}

const PolicySpec& Policy::spec() const noexcept { return compiled_->spec; }
const std::vector<std::string>& Policy::files() const noexcept { return compiled_->files; }

}  // namespace weir
