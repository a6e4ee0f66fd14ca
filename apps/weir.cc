// The program: `weir --help` says what it does.
#include <unistd.h>

#include <iostream>
#include <span>

#include "server/command_line.h"

int main(int argc, char** argv) {
  weir::Console console{.in = std::cin,
                        .out = std::cout,
                        .err = std::cerr,
                        .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                        .err_is_terminal = isatty(STDERR_FILENO) == 1};
  return weir::RunCommandLine(std::span<const char* const>(argv, static_cast<std::size_t>(argc)),
                              console);
}
