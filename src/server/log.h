// What a running service tells those who run it: one line for each event, on standard error.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace weir {

// May be used from any thread. Never on the way of a request.
class Log {
 public:
  Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  enum class Level : std::uint8_t { kInfo, kWarning, kError };
  // A text of several lines becomes as many lines of the log.
  void Write(Level level, std::string_view text) const;
  void Info(std::string_view text) const { Write(Level::kInfo, text); }
  void Warn(std::string_view text) const { Write(Level::kWarning, text); }
  void Fail(std::string_view text) const { Write(Level::kError, text); }

 private:
  struct Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace weir
