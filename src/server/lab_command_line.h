// The commands of the lab on the command line: compare, calibrate, replay, simulate.
#pragma once

#include <optional>

#include "server/calibrate_command.h"
#include "server/compare_command.h"
#include "server/console.h"
#include "server/replay_command.h"
#include "server/simulate_command.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir {

class LabCommandLine {
 public:
  explicit LabCommandLine(CLI::App& app);

  // What the command ended with; nothing if none of these was asked for.
  std::optional<int> Run(const Console& console) const;

 private:
  CLI::App* compare_;
  CLI::App* calibrate_;
  CLI::App* replay_;
  CLI::App* simulate_;
  CompareOptions compare_options_;
  CalibrateOptions calibrate_options_;
  ReplayOptions replay_options_;
  SimulateOptions simulate_options_;
};

}  // namespace weir
