#include "lab/log/parsed_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lab/log/log_format.h"

namespace weir::lab {
namespace {

using Kind = LineResult::Kind;

class BlockParser {
 public:
  BlockParser(ParsedBlock& block, LineParser& parser, const ParseOptions& options)
      : block_(block), parser_(parser), options_(options) {}

  void Run() {
    const char* at = block_.text.room.get();
    const char* const end = at + block_.text.size;
    if (block_.text.number == options_.heading_block) headings_ = options_.heading_lines;
    if (block_.text.number == 0 && block_.text.text().starts_with(kByteOrderMark)) {
      at += kByteOrderMark.size();
    }
    while (at < end) {
      const auto rest = static_cast<std::size_t>(end - at);
      const auto* const newline = static_cast<const char*>(std::memchr(at, '\n', rest));
      const char* const line_end = newline != nullptr ? newline : end;
      ++line_;
      if (newline == nullptr && block_.text.ends_in_pieces) {
        Unparsed({at, rest}, "it is not whole: the file ends here before its end");
        break;
      }
      TakeLine(std::string_view(at, static_cast<std::size_t>(line_end - at)));
      at = line_end + 1;
    }
    if (block_.text.ends_too_long) {
      ++line_;
      TooLong(block_.text.too_long_begins);
    }
    block_.counts.lines = line_;
    block_.counts.requests = block_.records.size();
    if (!is_sorted_) Sort();
  }

 private:
  void TakeLine(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > kMaxLineBytes) {
      TooLong(line);
      return;
    }
    if (line.empty() || line_ <= headings_) {
      ++block_.counts.blank;
      return;
    }
    LogRecord& record = block_.records.emplace_back();
    const LineResult parsed = parser_.Parse(line, record, block_.texts);
    if (parsed.kind != Kind::kRequest) {
      block_.records.pop_back();
      if (parsed.kind == Kind::kBlank) {
        ++block_.counts.blank;
      } else {
        Unparsed(line, parsed.why);
      }
      return;
    }
    record.line = line_;
    record.file = options_.file;
    if (record.time != last_) TakeTime(line, record.time);
  }

  // One that differs from the time before it.
  void TakeTime(std::string_view line, WallTime time) {
    if (time.time_since_epoch() % std::chrono::seconds(1) != Duration(0)) {
      block_.counts.whole_seconds = false;
    }
    if (block_.records.size() == 1) {
      block_.newest = time;
    } else if (time < block_.newest - options_.horizon) {
      block_.records.pop_back();
      ++block_.counts.late;
      Example(line, kWhyLate);
      return;
    }
    if (time < last_) is_sorted_ = false;
    last_ = time;
    block_.newest = std::max(block_.newest, time);
  }

  void Unparsed(std::string_view line, const char* why) {
    ++block_.counts.unparsed;
    Example(line, why);
  }
  void TooLong(std::string_view line) {
    ++block_.counts.too_long;
    Example(line, "it is longer than 64 KiB");
  }
  void Example(std::string_view line, const char* why) {
    if (block_.counts.examples.size() >= kMostExamples) return;
    block_.counts.examples.push_back({.line = line_, .why = why, .text = Printable(line)});
  }

  // Logs are nearly sorted, so that few move, and not far.
  void Sort() {
    std::vector<LogRecord>& records = block_.records;
    std::size_t budget = records.size() * 4;
    for (std::size_t i = 1; i < records.size(); ++i) {
      if (records[i].time >= records[i - 1].time) continue;
      const auto here = records.begin() + static_cast<std::ptrdiff_t>(i);
      const auto place =
          std::ranges::upper_bound(records.begin(), here, records[i].time, {}, &LogRecord::time);
      const auto moves = static_cast<std::size_t>(here - place);
      if (moves > budget) {
        std::ranges::sort(records, {},
                          [](const LogRecord& it) { return std::pair(it.time, it.line); });
        return;
      }
      budget -= moves;
      std::rotate(place, here, here + 1);
    }
  }

  ParsedBlock& block_;
  LineParser& parser_;
  const ParseOptions& options_;
  std::uint64_t line_ = 0;
  std::uint64_t headings_ = 0;
  WallTime last_{WallTime::min()};
  bool is_sorted_ = true;
};

}  // namespace

void ParseBlock(ParsedBlock& block, LineParser& parser, const ParseOptions& options) {
  block.texts.Clear();
  block.records.clear();
  block.counts = LogCounts();
  block.newest = WallTime();
  block.file = options.file;
  block.told = 0;
  BlockParser(block, parser, options).Run();
}

std::string LineOf(const ParsedBlock& block, std::uint64_t line) {
  std::string_view rest = block.text.text();
  for (std::uint64_t i = 1; i < line; ++i) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
  return Printable(rest.substr(0, rest.find('\n')));
}

}  // namespace weir::lab
