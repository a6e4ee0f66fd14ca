// Whatever is in a policy file, reading it must end well: with problems that have a code, a place
// and a message, or with a policy that, written to a file, is read back as the same one.
//
// Files that the policy names are looked for in a folder that does not exist, and inputs that name
// one in another way are left out, so that nothing of the machine gets into the result.
#include <weir/policy.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr const char* kFileName = "/nonexistent/weir/policy.yaml";

[[noreturn]] void Fail(const char* what, const weir::PolicyReport& report) {
  std::fprintf(stderr, "%s\n", what);
  for (const weir::Problem& problem : report.problems) {
    std::fprintf(stderr, "%s\n", problem.ToString().c_str());
  }
  std::abort();
}

void CheckProblems(const weir::PolicyReport& report) {
  bool errors = false;
  for (const weir::Problem& problem : report.problems) {
    if (problem.code.size() != 4) Fail("a problem without a code", report);
    if (problem.message.empty()) Fail("a problem without a message", report);
    if (problem.file != kFileName) Fail("a problem in another file", report);
    if (problem.line < 1 || problem.column < 1) Fail("a problem without a place", report);
    const bool error = problem.severity == weir::Severity::kError;
    if (error != (problem.code[0] == 'E')) Fail("a code of another severity", report);
    errors = errors || error;
  }
  if (report.policy.has_value() == errors) Fail("a policy with errors, or none without", report);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("file:") != std::string_view::npos || text.find('/') == 0) return 0;
  const weir::PolicyReport report = weir::Policy::Parse(text, kFileName);
  CheckProblems(report);
  if (!report.policy) return 0;
  const weir::PolicySpec& spec = report.policy->spec();
  const std::string written = weir::ToYaml(spec);
  const weir::PolicyReport again = weir::Policy::Parse(written, kFileName);
  CheckProblems(again);
  if (!again.policy || again.policy->spec() != spec) {
    std::fprintf(stderr, "%s\n", written.c_str());
    Fail("written and read back, it is another policy", again);
  }
  return 0;
}
