// Access logs, from whatever wrote them, as requests in the order of their time. A log may be
// larger than memory, compressed, cut short or full of rubbish: what is held is bounded by the
// horizon within which lines are sorted, and whatever had to be left out is counted, with its
// reason.
//
//   auto reader = LogReader::Open({.files = {"access.log.1.gz", "access.log"}}, std::cin);
//   for (auto batch = (*reader)->Next(); !batch.empty(); batch = (*reader)->Next()) ...
//   for (const LogCounts& of : (*reader)->counts()) ...
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/request.h>
#include <weir/result.h>
#include <weir/time.h>

#include "base/ticks.h"
#include "lab/progress.h"

namespace weir::lab {

// One request. What a log does not say is empty.
struct LogRecord {
  WallTime time{};
  std::uint64_t line = 0;  // In its file, from 1.
  std::uint32_t file = 0;  // By its place in LogSettings::files.
  int status = 0;
  std::int64_t cost = 1;
  std::string_view ip{};
  std::string_view user{};
  std::string_view api_key{};
  std::string_view org{};
  std::string_view tier{};
  std::string_view method{};
  std::string_view path{};  // With its query, as it was sent.
  std::string_view host{};
  std::string_view user_agent{};
  // What LogSettings::wanted asks for, in that order.
  std::span<const std::string_view> wanted{};
};

struct LogSettings {
  std::vector<std::string> files{};  // - is standard input.
  std::string format = "auto";       // combined, envoy, alb, caddy, csv, jsonl
  // Which column of the log is the time, ip, user and so on: {"user", "account_id"}.
  std::vector<std::pair<std::string, std::string>> columns{};
  // More columns of the log, by their names there.
  std::vector<std::string> wanted{};
  // Who does not need LogRecord::user_agent may say so: it is long, and at the end of a line.
  bool user_agent = true;
  // Lines are sorted by time if none comes more than this after one of a later time. One that does
  // is left out.
  Duration horizon = std::chrono::seconds(60);
  // No more requests than these, or what takes 1 GiB, are held for that: beyond, the oldest are
  // told, and what comes later and is older than those is late, too.
  std::size_t most_held = 4'000'000;
  int threads = 0;  // 0: one for each core.
  Progress* progress = nullptr;
};

// From the first request on; in an engine time stands still after that.
inline constexpr Duration kLongestLog = Timeline::kLasts;

// What became of the lines of one file.
struct LogCounts {
  // One of those that could not be used: the first few are kept.
  struct Example {
    std::uint64_t line = 0;
    std::string why{};
    std::string text{};  // How it begins, made fit to be shown.
  };
  std::string file{};
  std::string format{};
  std::uint64_t lines = 0;     // All, blank ones and headings included.
  std::uint64_t requests = 0;  // Those that were told.
  std::uint64_t blank = 0;     // Nothing in them, headings and comments included.
  std::uint64_t unparsed = 0;  // Not of the format, or of a time beyond kLongestLog.
  std::uint64_t too_long = 0;
  std::uint64_t late = 0;  // Out of order by more than the horizon.
  std::vector<Example> examples{};
  std::string cut_short{};    // Why it ended before its end, if it did.
  bool whole_seconds = true;  // No line had a finer time.

  std::uint64_t left_out() const noexcept { return unparsed + too_long + late; }
};

// Belongs to one thread; it has threads of its own.
class LogReader {
 public:
  // The error names the file that cannot be opened, or the setting that cannot be used, or says
  // that nothing in a file looks like a format that is known.
  static Result<std::unique_ptr<LogReader>> Open(const LogSettings& settings,
                                                 std::istream& standard_input);
  virtual ~LogReader() = default;

  // The next requests, none earlier than one before it; empty: that was all. Good until the next
  // call. Several files are merged by time.
  virtual std::span<const LogRecord> Next() = 0;

  // One for each file, complete once Next has come to the end.
  virtual const std::vector<LogCounts>& counts() const = 0;
};

}  // namespace weir::lab
