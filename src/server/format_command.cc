#include "server/format_command.h"

#include <algorithm>

#include "policy/file_text.h"
#include "policy/problems.h"
#include "policy/yaml_format.h"
#include "server/replace_file.h"

namespace weir {
namespace {

class Formatter {
 public:
  Formatter(const FormatOptions& options, const Console& console)
      : options_(options), console_(console) {}

  // False if something is wrong, or is not in form and should be.
  bool Format(const std::string& file) {
    const bool is_input = file == kStandardInput;
    const std::string name = is_input ? kStandardInputName : file;
    const Result<std::string> text =
        is_input ? ReadAll(console_.in, kMaxYamlBytes) : ReadWholeFile(file, kMaxYamlBytes);
    if (!text) return Fail(text.error().message);
    const FormattedYaml formatted = FormatYaml(*text);
    if (!formatted.text) return Fail(name, formatted.problems);

    const bool changed = *formatted.text != *text;
    if (options_.check) {
      if (changed) console_.out << name << '\n';
      return !changed;
    }
    if (is_input || options_.to_stdout) {
      console_.out << *formatted.text;
      return true;
    }
    if (!changed) return true;
    const Result<void> replaced = ReplaceFile(file, *formatted.text);
    if (!replaced) return Fail(replaced.error().message);
    console_.out << name << '\n';
    return true;
  }

 private:
  bool Fail(const std::string& message) {
    console_.err << message << '\n';
    return false;
  }

  bool Fail(const std::string& name, const std::vector<YamlProblem>& problems) {
    ProblemList list(name);
    for (const YamlProblem& problem : problems) {
      list.AddAt(CodeFor(problem.kind), name, problem.place, "", problem.message);
    }
    for (const Problem& problem : list.Take()) console_.err << problem.ToString() << '\n';
    return false;
  }

  const FormatOptions& options_;
  const Console& console_;
};

}  // namespace

int RunFormat(const FormatOptions& options, const Console& console) {
  Formatter formatter(options, console);
  bool well = true;
  for (const std::string& file : options.files) well = formatter.Format(file) && well;
  return well ? kExitOk : kExitProblems;
}

}  // namespace weir
