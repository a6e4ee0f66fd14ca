// Stands in for lab_command_line.cc in a program that is built without the lab.
#include <array>
#include <ostream>

#include <CLI/CLI.hpp>

#include "server/lab_command_line.h"

namespace weir {

struct LabCommandLine::Commands {
  std::array<CLI::App*, 4> all{};
};

LabCommandLine::LabCommandLine(CLI::App& app) : commands_(std::make_unique<Commands>()) {
  std::size_t i = 0;
  for (const char* const name : {"compare", "calibrate", "replay", "simulate"}) {
    CLI::App* const command = app.add_subcommand(name, "Not part of this program");
    command->group("");  // --help does not list it.
    command->allow_extras()->set_help_flag();
    commands_->all[i++] = command;
  }
}

LabCommandLine::~LabCommandLine() = default;

std::optional<int> LabCommandLine::Run(const Console& console) const {
  for (const CLI::App* const command : commands_->all) {
    if (!command->parsed()) continue;
    console.err << "weir: this program was built without the lab, so it has no command "
                << command->get_name() << "; build it with -DWEIR_BUILD_LAB=ON\n";
    return kExitUsage;
  }
  return std::nullopt;
}

}  // namespace weir
