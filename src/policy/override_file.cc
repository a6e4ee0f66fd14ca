#include "policy/override_file.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "limit/limit_words.h"
#include "policy/attribute.h"
#include "policy/override_rows.h"

namespace weir {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr std::array<Word<OverrideFormat>, 3> kEndings = {{
    {".csv", OverrideFormat::kCsv},
    {".jsonl", OverrideFormat::kJsonLines},
    {".ndjson", OverrideFormat::kJsonLines},
}};

constexpr bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

bool IsUtf8(const char* start, const char* end) {
  return simdjson::validate_utf8(start, static_cast<std::size_t>(end - start));
}

void ReportEncoding(std::string_view text, OverrideRows& rows) {
  std::uint32_t line = 1;
  const char* const end = text.data() + text.size();
  const char* start = text.data();
  const char* line_end = std::find(start, end, '\n');
  while (line_end != end && IsUtf8(start, line_end)) {
    start = line_end + 1;
    line_end = std::find(start, end, '\n');
    ++line;
  }
  // The longest beginning that is UTF-8; in a very long line, about where people would look.
  constexpr std::ptrdiff_t kFarEnough = 1024;
  const char* good = start + std::min(line_end - start, kFarEnough);
  while (!IsUtf8(start, good)) --good;
  rows.Begin(line, start);
  rows.Problem(OverrideFileProblem::Kind::kEncoding, good,
               "this is not UTF-8; save the file in that encoding");
}

}  // namespace

Result<OverrideFormat> OverrideFormatOf(std::string_view file_name) {
  for (const Word<OverrideFormat>& ending : kEndings) {
    if (file_name.ends_with(ending.text)) return ending.meaning;
  }
  return std::unexpected(
      Error{ErrorCode::kInvalidArgument, "the name of the file " + Quoted(file_name) +
                                             " must end with .csv, .jsonl or .ndjson, which says "
                                             "how it is written"});
}

std::vector<OverrideFileProblem> ReadOverrideFile(std::string_view text, OverrideFormat format,
                                                  const OverrideSink& sink) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  OverrideRows rows(text, sink);
  if (text.size() > kMaxOverrideFileBytes) {
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a place in the text
    rows.Problem(OverrideRows::Kind::kTooLarge, text.data(),
                 "the file has more than " + std::to_string(kMaxOverrideFileBytes) + " bytes");
  } else if (!simdjson::validate_utf8(text)) {
    ReportEncoding(text, rows);
  } else if (format == OverrideFormat::kCsv) {
    ReadOverrideCsv(text, rows);
  } else {
    ReadOverrideJsonLines(text, rows);
  }
  return rows.TakeProblems();
}

std::string OverrideName::Set(std::string_view name) {
  if (meaning_ != Meaning::kUnknown && written_ == name) return {};
  meaning_ = Meaning::kUnknown;
  attribute_.clear();
  if (name == "limit") {
    meaning_ = Meaning::kLimit;
  } else if (name == "key") {
    meaning_ = Meaning::kKey;
  } else {
    const Result<Attribute> attribute = ParseAttribute(name);
    if (!attribute) return attribute.error().message + "; besides these, limit and key";
    meaning_ = Meaning::kAttribute;
    attribute_ = ToString(*attribute);
  }
  written_ = name;
  return {};
}

OverrideRows::OverrideRows(std::string_view text, const OverrideSink& sink)
    : text_(text), sink_(sink), start_(text.data()) {
  key_.reserve(kMaxOverrideColumns);
}

void OverrideRows::Begin(std::uint32_t line, const char* at) {
  line_ = line;
  start_ = at;
  key_.clear();
  limit_ = {};
}

void OverrideRows::Add(const OverrideName& name, std::string_view value) {
  if (value.empty()) return;
  if (name.meaning() == OverrideName::Meaning::kLimit) {
    limit_ = value;
  } else {
    key_.emplace_back(name.attribute(), value);
  }
}

void OverrideRows::End(const char* at) {
  if (static_cast<std::size_t>(at - start_) > kMaxOverrideRowBytes) {
    return Problem(Kind::kTooLarge, start_,
                   "the row has more than " + std::to_string(kMaxOverrideRowBytes) + " bytes");
  }
  if (limit_.empty()) {
    return Problem(Kind::kNoLimit, start_, "the row has no limit, such as 100/min");
  }
  if (key_.empty()) {
    return Problem(Kind::kNoKey, start_, "the row does not say for which key the limit is");
  }
  if (rows_ == kMaxOverrideRows) {
    Problem(Kind::kTooLarge, start_,
            "there are more than " + std::to_string(kMaxOverrideRows) + " rows");
    too_many_ = true;
    return;
  }
  ++rows_;
  sink_({.line = line_, .key = key_, .limit = limit_});
}

const char* OverrideRows::LineStartOf(const char* at) const {
  while (at != text_.data() && at[-1] != '\n') --at;
  return at;
}

// Counted here, where there are few, and not for every byte of the file.
void OverrideRows::Problem(Kind kind, const char* at, std::string message) {
  if (done()) return;
  const auto lines = std::count(start_, at, '\n');
  const char* line_start = LineStartOf(at);
  const auto continued = std::count_if(line_start, at, Continues);
  problems_.push_back({.line = static_cast<int>(line_ + lines),
                       .column = static_cast<int>(at - line_start - continued) + 1,
                       .kind = kind,
                       .message = std::move(message)});
}

}  // namespace weir
