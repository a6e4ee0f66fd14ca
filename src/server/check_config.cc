#include "server/check_config.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "policy/problems.h"
#include "policy/yaml_tree.h"
#include "server/json_text.h"

namespace weir {
namespace {

nlohmann::ordered_json ToJson(const Problem& problem) {
  return {{"code", problem.code},
          {"severity", problem.severity == Severity::kError ? "error" : "warning"},
          {"file", problem.file},
          {"line", problem.line},
          {"column", problem.column},
          {"where", problem.where},
          {"message", problem.message}};
}

std::string Summary(const PolicyReport& report, std::size_t errors) {
  if (report.policy && report.problems.empty()) {
    return "ok, " + CountOf(report.policy->spec().rules.size(), "rule");
  }
  return CountOf(errors, "error") + ", " + CountOf(report.problems.size() - errors, "warning");
}

}  // namespace

PolicyReport LoadPolicy(const std::string& file, std::istream& in) {
  if (file != kStandardInput) return Policy::Load(file);
  const Result<std::string> text = ReadAll(in, kMaxYamlBytes);
  if (text) return Policy::Parse(*text, kStandardInputName);
  ProblemList problems(kStandardInputName);
  problems.AddAt(ProblemCode::kTooLarge, kStandardInputName, {.line = 1, .column = 1}, "",
                 text.error().message);
  return {.policy = std::nullopt, .problems = problems.Take()};
}

void PrintProblems(const std::vector<Problem>& problems, std::ostream& out) {
  for (const Problem& problem : problems) out << problem.ToString() << '\n';
}

int RunCheckConfig(const CheckConfigOptions& options, const Console& console) {
  const PolicyReport report = LoadPolicy(options.file, console.in);
  const auto errors = static_cast<std::size_t>(
      std::ranges::count(report.problems, Severity::kError, &Problem::severity));
  if (options.json) {
    auto list = nlohmann::ordered_json::array();
    for (const Problem& problem : report.problems) list.push_back(ToJson(problem));
    console.out << TextOf(list) << '\n';
  } else {
    const bool from_input = options.file == kStandardInput;
    PrintProblems(report.problems, console.out);
    console.out << (from_input ? kStandardInputName : options.file) << ": "
                << Summary(report, errors) << '\n';
  }
  const bool wrong = errors > 0 || (options.strict && !report.problems.empty());
  return wrong ? kExitProblems : kExitOk;
}

}  // namespace weir
