// The commands of the lab on the command line: compare, calibrate, replay, simulate. A program that
// is built without the lab (WEIR_BUILD_LAB) has them too; each only prints what is missing.
#pragma once

#include <memory>
#include <optional>

#include "server/console.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace weir {

class LabCommandLine {
 public:
  explicit LabCommandLine(CLI::App& app);
  ~LabCommandLine();
  LabCommandLine(const LabCommandLine&) = delete;
  LabCommandLine& operator=(const LabCommandLine&) = delete;

  // Runs the command that was parsed and returns its exit code; nothing if it is not one of these.
  std::optional<int> Run(const Console& console) const;

 private:
  struct Commands;
  std::unique_ptr<Commands> commands_;
};

}  // namespace weir
