// What a running service tells those who run it: one line for each event, on standard error, for
// people or for programs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace weir {

// May be used from any thread. Never on the way of a request.
class Log {
 public:
  enum class Format : std::uint8_t {
    kText,  // TIME LEVEL TEXT NAME=VALUE ...
    kJson,  // An object: time, level, text, and the names.
  };
  explicit Log(Format format = Format::kText);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  enum class Level : std::uint8_t { kInfo, kWarning, kError };
  struct Field {
    std::string_view name;
    std::string value;
  };
  using Fields = std::initializer_list<Field>;
  // A text of several lines becomes as many lines of the log.
  void Write(Level level, std::string_view text, Fields fields = {}) const;
  void Info(std::string_view text, Fields fields = {}) const { Write(Level::kInfo, text, fields); }
  void Warn(std::string_view text) const { Write(Level::kWarning, text); }
  void Fail(std::string_view text) const { Write(Level::kError, text); }

 private:
  struct Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace weir
