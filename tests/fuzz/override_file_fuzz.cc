// Whatever is in a file of overrides, reading it must end well, and what it gives must hold what
// its users count on: rows with a key and a limit, in the order of their lines, and problems that
// say where they are.
//
// The first byte picks the format: even CSV, odd JSON lines. The rest is the text.
#include "policy/override_file.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "policy/attribute.h"

namespace {

[[noreturn]] void Fail(const char* what, std::uint32_t line) {
  std::fprintf(stderr, "line %u: %s\n", line, what);
  std::abort();
}

class RowChecker {
 public:
  void operator()(const weir::OverrideRow& row) {
    if (row.line <= last_line_) Fail("a row before the one that was before it", row.line);
    last_line_ = row.line;
    if (row.limit.empty()) Fail("no limit", row.line);
    if (row.key.empty()) Fail("no key", row.line);
    for (const auto& [name, value] : row.key) {
      if (value.empty()) Fail("an empty value", row.line);
      if (name.empty() && row.key.size() > 1) Fail("a name left out beside others", row.line);
      if (name.empty()) continue;
      const weir::Result<weir::Attribute> attribute = weir::ParseAttribute(name);
      if (!attribute || weir::ToString(*attribute) != name) Fail("no attribute", row.line);
    }
  }

 private:
  std::uint32_t last_line_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto format =
      data[0] % 2 == 0 ? weir::OverrideFormat::kCsv : weir::OverrideFormat::kJsonLines;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<weir::OverrideFileProblem> problems =
      weir::ReadOverrideFile(text, format, RowChecker());
  if (problems.size() > weir::kMaxOverrideProblems) Fail("too many problems", 0);
  int lines = 1;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  for (const weir::OverrideFileProblem& problem : problems) {
    if (problem.message.empty()) Fail("a problem without a reason", 0);
    if (problem.line < 1 || problem.line > lines || problem.column < 1) {
      Fail("a problem that is nowhere in the text", 0);
    }
  }
  return 0;
}
