// A line of a log in, a request out. Parsers keep nothing of a line but views into it; a text that
// is written otherwise in the log than it was sent (escapes, doubled quotes) goes into the Texts
// that belong to the block of lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/result.h>

#include "lab/log/log_columns.h"
#include "lab/log/log_reader.h"

namespace weir::lab {

// A line may be so long; what is longer is left out.
inline constexpr std::size_t kMaxLineBytes = 65'536;
// Behind a line there must be so many bytes that may be read, whatever they are.
inline constexpr std::size_t kLinePadding = 64;

// Room for texts, and for the lists of wanted ones, that stays where it is until Clear.
class Texts {
 public:
  // Of `bytes`, not set to anything.
  char* Room(std::size_t bytes);
  std::string_view Keep(std::string_view text);
  // All empty.
  std::span<std::string_view> List(std::size_t size);
  void Clear() noexcept;
  std::size_t bytes() const noexcept { return pieces_.size() * kPieceBytes; }

 private:
  static constexpr std::size_t kPieceBytes = 262'144;
  std::vector<std::unique_ptr<char[]>> pieces_;
  std::vector<std::unique_ptr<char[]>> large_;
  std::size_t piece_ = 0;  // The one that is filled now,
  std::size_t used_ = 0;   // up to here.
};

struct LineResult {
  enum class Kind : std::uint8_t { kRequest, kBlank, kUnparsed };
  Kind kind = Kind::kUnparsed;
  const char* why = "";  // Of one that is not parsed.
  // It would have been a request had somebody said which column is the time.
  bool lacks_time_column = false;
};

// Belongs to one thread.
class LineParser {
 public:
  virtual ~LineParser() = default;
  // Sets all of `record` but file and line; whether it does so for a line that is no request is
  // open. `line` has neither an end of line nor more than kMaxLineBytes, and kLinePadding behind
  // it.
  virtual LineResult Parse(std::string_view line, LogRecord& record, Texts& texts) = 0;
};

// How the lines of a file are to be read. Immutable; shared by its parsers.
class LineFormat {
 public:
  virtual ~LineFormat() = default;
  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<LineParser> MakeParser() const = 0;
};

// `names` must be right by CheckNames. The error of these names a column that there is not.
Result<std::unique_ptr<LineFormat>> MakeCombinedFormat(const ColumnNames& names);
Result<std::unique_ptr<LineFormat>> MakeAlbFormat(const ColumnNames& names);
Result<std::unique_ptr<LineFormat>> MakeCsvFormat(std::string_view heading,
                                                  const ColumnNames& names);
// envoy, caddy or jsonl. Which columns there are only a line can tell.
std::unique_ptr<LineFormat> MakeJsonFormat(std::string_view name, const ColumnNames& names);
// The names of what is in an object, with dots where objects are nested; empty if it is none.
std::vector<std::string> ColumnsOfJson(std::string_view line);

// --- For parsers. ---

// Fit to be shown: the beginning, in printable characters.
std::string Printable(std::string_view text);
// For messages. Whoever wrote the log named them, so they are shown as what they are.
std::string ListOfColumns(const std::vector<std::string>& columns);
std::string NoTimeAmong(const std::vector<std::string>& columns);

// What logs write for something that is not there.
inline bool IsAbsent(std::string_view text) noexcept {
  return text.empty() || (text.size() == 1 && text[0] == '-');
}

// Only blanks, or a remark.
bool SaysNothing(std::string_view line) noexcept;

// GET /x HTTP/1.1. If it is no request (bytes of TLS on a plain port), neither is set: it came from
// somebody at some time, and counts.
void SplitRequestLine(std::string_view line, LogRecord& record) noexcept;

// 192.0.2.1:1234 and [2001:db8::1]:1234 without the port; others as they are.
std::string_view WithoutPort(std::string_view address) noexcept;

// \x22, \", \\, \n as nginx and Apache write what would end a field. The same text if there are
// none.
std::string_view Unescape(std::string_view text, Texts& texts);

// Puts together what the columns of a line say.
class RecordBuilder {
 public:
  void Begin(LogRecord& record, std::size_t wanted, Texts& texts);
  void Take(const ColumnUse& use, std::string_view value);
  // What is missing or wrong, if something is.
  LineResult Finish();

 private:
  static constexpr std::uint8_t kNotSaid = 255;
  std::string_view Of(Field field) const noexcept {
    return values_[static_cast<std::size_t>(field)];
  }

  LogRecord* record_ = nullptr;
  std::span<std::string_view> wanted_{};
  std::array<std::uint8_t, kFields> ranks_{};
  std::array<std::string_view, kFields> values_{};
};

}  // namespace weir::lab
