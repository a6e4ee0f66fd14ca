// The program: `weir --help` says what it does.
#include <iostream>
#include <span>

#include "server/command_line.h"

int main(int argc, char** argv) {
  weir::Console console{.in = std::cin, .out = std::cout, .err = std::cerr};
  return weir::RunCommandLine(std::span<const char* const>(argv, static_cast<std::size_t>(argc)),
                              console);
}
