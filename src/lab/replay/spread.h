// Logs often have whole seconds only, so that what came over a second seems to have come at once.
// This spreads the requests of such a second evenly over it, in the order of the log.
#pragma once

#include <span>
#include <vector>

#include "lab/log/line_parser.h"
#include "lab/log/log_reader.h"

namespace weir::lab {

class Spread {
 public:
  explicit Spread(LogReader& reader) : reader_(reader) {}

  // As LogReader::Next. All requests of one second are held at a time. A second in which one has a
  // finer time stays as it is.
  std::span<const LogRecord> Next();

 private:
  void Keep(std::span<const LogRecord> records, Texts& texts);
  static void SpreadOver(std::span<LogRecord> second);

  LogReader& reader_;
  std::vector<LogRecord> out_;
  // What was read of a second that may go on; its texts are in one of two, in turn with those of
  // the second that was told last.
  std::vector<LogRecord> begun_;
  Texts texts_[2];
  int current_ = 0;
  bool ended_ = false;
};

}  // namespace weir::lab
