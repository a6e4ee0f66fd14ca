// Logs often have whole seconds only, so that what came over a second seems to have come at once.
// This spreads the requests of such a second evenly over it, in the order of the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lab/log/line_parser.h"
#include "lab/log/log_reader.h"

namespace weir::lab {

class Spread {
 public:
  static constexpr std::size_t kMost = 500'000;
  explicit Spread(LogReader& reader, std::size_t most = kMost) : reader_(reader), most_(most) {}

  // As LogReader::Next. All requests of one second are held at a time. A second in which one has a
  // finer time stays as it is, and so does one with more than `most` requests.
  std::span<const LogRecord> Next();
  // So many seconds of the latter kind there were.
  std::uint64_t as_they_are() const noexcept { return as_they_are_; }

 private:
  void Keep(std::span<const LogRecord> records, Texts& texts);
  void SpreadOver(std::span<LogRecord> second);

  std::span<const LogRecord> GiveUp();

  LogReader& reader_;
  const std::size_t most_;
  std::vector<LogRecord> out_;
  // What was read of a second that may go on; its texts are in one of two, in turn with those of
  // the second that was told last.
  std::vector<LogRecord> begun_;
  Texts texts_[2];
  int current_ = 0;
  bool ended_ = false;
  std::optional<std::chrono::sys_seconds> given_up_{};  // The second that was too full.
  std::uint64_t as_they_are_ = 0;
};

}  // namespace weir::lab
