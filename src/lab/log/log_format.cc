#include "lab/log/log_format.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace weir::lab {
namespace {

using Kind = LineResult::Kind;

// The first of those that fit equally well is taken: any JSON fits jsonl.
constexpr std::array<std::string_view, 6> kFormats = {"combined", "alb",   "caddy",
                                                      "envoy",    "jsonl", "csv"};
constexpr std::size_t kLinesLookedAt = 100;
constexpr std::size_t kJunkLookedAt = 5'000;

Error Wrong(const FormatQuestion& question, const std::string& why,
            ErrorCode code = ErrorCode::kInvalidArgument) {
  return {code, (question.file == "-" ? "standard input" : question.file) + ": " + why};
}

Error NothingHere(const FormatQuestion& question) {
  return Wrong(question,
               "nothing but blanks and lines that are too long where it begins: say what it is "
               "with --format",
               ErrorCode::kNotFound);
}

std::vector<std::string_view> LinesOf(const FormatQuestion& question) {
  std::vector<std::string_view> lines;
  std::string_view rest = question.begins;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  while (!rest.empty() && lines.size() < kJunkLookedAt) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line.size() > kMaxLineBytes ? std::string_view() : line);
  }
  return lines;
}

bool Has(std::string_view line, std::string_view name) { return line.contains(name); }

// Any JSON with a time would do for these, so what makes them what they are must be there.
bool MayBe(std::string_view format, std::string_view line) {
  if (format == "caddy") {
    return Has(line, "\"request\"") && Has(line, "\"ts\"") &&
           (Has(line, "\"remote_ip\"") || Has(line, "\"remote_addr\"") ||
            Has(line, "\"client_ip\""));
  }
  if (format == "envoy") return Has(line, "\"start_time\"") && Has(line, "\"response_code\"");
  return true;
}

struct Try {
  std::size_t requests = 0;
  std::size_t without_time = 0;
  std::string_view first_without_time{};
};

Try TryFormat(const LineFormat& format, std::span<const std::string_view> lines, bool detecting) {
  Try result;
  const std::unique_ptr<LineParser> parser = format.MakeParser();
  LogRecord record;
  Texts texts;
  for (const std::string_view line : lines) {
    if (SaysNothing(line) || (detecting && !MayBe(format.name(), line))) continue;
    texts.Clear();
    const LineResult parsed = parser->Parse(line, record, texts);
    result.requests += parsed.kind == Kind::kRequest ? 1 : 0;
    if (parsed.lacks_time_column && result.without_time++ == 0) result.first_without_time = line;
    if (result.requests >= kLinesLookedAt) break;
  }
  return result;
}

std::string NoTime(std::string_view line) { return NoTimeAmong(ColumnsOfJson(line)); }

// Names of columns look like names.
bool LooksLikeHeading(std::string_view line) {
  const bool several = line.find_first_of(",;\t") != std::string_view::npos;
  const bool words = std::ranges::all_of(line, [](char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("_-.@:,;\t \"").contains(c);
  });
  const bool begins = !line.empty() && !(line[0] >= '0' && line[0] <= '9');
  return several && words && begins;
}

Result<std::unique_ptr<LineFormat>> Make(std::string_view name, std::string_view heading,
                                         const ColumnNames& names) {
  if (name == "combined") return MakeCombinedFormat(names);
  if (name == "alb") return MakeAlbFormat(names);
  if (name == "csv") return MakeCsvFormat(heading, names);
  return MakeJsonFormat(name, names);
}

class Finder {
 public:
  Finder(const FormatQuestion& question, const ColumnNames& names)
      : question_(question), names_(names), lines_(LinesOf(question)) {
    while (first_ < lines_.size() && SaysNothing(lines_[first_])) ++first_;
  }

  bool is_empty() const noexcept { return first_ == lines_.size(); }

  Result<FormatFound> Named(std::string_view name) {
    if (name == "csv" && is_empty()) return std::unexpected(NothingHere(question_));
    Result<std::unique_ptr<LineFormat>> format =
        Make(name, is_empty() ? std::string_view() : lines_[first_], names_);
    if (!format) return std::unexpected(Wrong(question_, format.error().message));
    const bool is_json = name == "jsonl" || name == "caddy" || name == "envoy";
    if (is_json) {
      const Try tried = TryFormat(**format, lines_, false);
      if (tried.requests == 0 && tried.without_time > 0) {
        return std::unexpected(Wrong(question_, NoTime(tried.first_without_time)));
      }
    }
    return Found(name, *std::move(format));
  }

  Result<FormatFound> Best() {
    std::optional<FormatFound> best;
    std::size_t most = 0;
    std::string complaint;
    for (const std::string_view name : kFormats) {
      const bool is_csv = name == "csv";
      if (is_csv && !LooksLikeHeading(lines_[first_])) continue;
      Result<std::unique_ptr<LineFormat>> format = Make(name, lines_[first_], names_);
      if (!format) {
        if (is_csv || Fits(name)) complaint = format.error().message;
        continue;
      }
      const auto rows = std::span(lines_).subspan(is_csv ? first_ + 1 : 0);
      const Try tried = TryFormat(**format, rows, true);
      if (name == "jsonl" && tried.without_time > 0) complaint = NoTime(tried.first_without_time);
      // A heading that names a time is one also if nothing is below it.
      const bool only_heading =
          is_csv && std::ranges::all_of(rows, SaysNothing) && question_.is_all;
      const std::size_t fits = only_heading ? 1 : tried.requests;
      // Any JSON fits jsonl, also what servers say of themselves between two requests.
      if (fits <= most ||
          (name == "jsonl" && best && (best->name == "caddy" || best->name == "envoy")))
        continue;
      most = fits;
      best = Found(name, *std::move(format));
    }
    if (best) return *std::move(best);
    if (!complaint.empty()) return std::unexpected(Wrong(question_, complaint));
    return std::unexpected(
        Wrong(question_,
              "nothing in it looks like a log that is known (tried combined, alb, caddy, "
              "envoy, jsonl and csv with a heading); it begins with \"" +
                  Printable(lines_[first_]) + "\": say what it is with --format",
              ErrorCode::kNotFound));
  }

 private:
  // Whether it would be this format, had nobody named columns that it has not.
  bool Fits(std::string_view name) const {
    const Result<std::unique_ptr<LineFormat>> plain = Make(name, lines_[first_], {});
    return plain && TryFormat(**plain, lines_, true).requests > 0;
  }

  FormatFound Found(std::string_view name, std::unique_ptr<LineFormat> format) const {
    return {.format = std::move(format),
            .name = std::string(name),
            .heading_lines = name == "csv" && !is_empty() ? first_ + 1 : 0};
  }

  const FormatQuestion& question_;
  const ColumnNames& names_;
  const std::vector<std::string_view> lines_;
  std::size_t first_ = 0;  // With something in it.
};

}  // namespace

Result<FormatFound> FindFormat(const FormatQuestion& question, const ColumnNames& names) {
  if (question.format != "auto" && std::ranges::find(kFormats, question.format) == kFormats.end()) {
    return std::unexpected(Error{
        ErrorCode::kInvalidArgument,
        "--format " + question.format + ": write auto, combined, envoy, alb, caddy, csv or jsonl"});
  }
  Finder finder(question, names);
  if (finder.is_empty() && question.is_all) {
    return FormatFound{.format = *MakeCombinedFormat({}), .name = "empty"};
  }
  if (question.format != "auto") return finder.Named(question.format);
  if (finder.is_empty()) return std::unexpected(NothingHere(question));
  return finder.Best();
}

}  // namespace weir::lab
