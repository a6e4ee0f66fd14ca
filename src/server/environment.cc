#include "server/environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <system_error>

namespace weir {

// At the start, when there are no other threads.
std::string TakeVariable(const char* name) {
  const char* const found = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  std::string value = found == nullptr ? "" : found;
  unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value;
}

std::optional<std::uint64_t> ParseNumber(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool IsThisProcess(std::string_view pid) noexcept {
  return ParseNumber(pid) == static_cast<std::uint64_t>(getpid());
}

}  // namespace weir
