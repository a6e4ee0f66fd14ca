#include "lab/log/log_account.h"

#include "limit/limit_words.h"

namespace weir::lab {
namespace {

std::string NameOf(const LogCounts& of) { return of.file == "-" ? "standard input" : of.file; }

std::string Number(std::uint64_t count) {
  return WriteValue(static_cast<double>(count), Unit::kCount);
}

Table FilesTable(const std::vector<LogCounts>& counts) {
  Table table{.title = "Lines",
              .columns = {{.label = "log", .is_text = true},
                          {.label = "format", .is_text = true},
                          {.label = "lines"},
                          {.label = "requests"},
                          {.label = "blank", .help = "Empty lines, headings and remarks"},
                          {.label = "unreadable", .help = "Not of the format"},
                          {.label = "too long", .help = "Longer than 64 KiB"},
                          {.label = "late", .help = "Out of order by more than the horizon"}}};
  for (const LogCounts& of : counts) {
    const auto bad = [](std::uint64_t count) {
      return Cell(static_cast<double>(count), count > 0 ? Tone::kWarning : Tone::kPlain);
    };
    table.rows.push_back({NameOf(of), of.format, static_cast<double>(of.lines),
                          static_cast<double>(of.requests), static_cast<double>(of.blank),
                          bad(of.unparsed), bad(of.too_long), bad(of.late)});
  }
  return table;
}

Table ExamplesTable(const std::vector<LogCounts>& counts) {
  Table table{.title = "Lines that were left out, the first of them",
              .columns = {{.label = "log", .is_text = true},
                          {.label = "line"},
                          {.label = "why", .is_text = true},
                          {.label = "begins with", .is_text = true}}};
  for (const LogCounts& of : counts) {
    for (const LogCounts::Example& example : of.examples) {
      table.rows.push_back(
          {NameOf(of), static_cast<double>(example.line), example.why, example.text});
    }
  }
  return table;
}

}  // namespace

LogAccount AccountOf(const std::vector<LogCounts>& counts, Duration horizon) {
  LogAccount account;
  std::uint64_t blank = 0;
  std::uint64_t late = 0;
  for (const LogCounts& of : counts) {
    account.lines += of.lines;
    account.requests += of.requests;
    account.left_out += of.left_out();
    blank += of.blank;
    late += of.late;
    account.whole_seconds = account.whole_seconds && of.whole_seconds;
    if (of.cut_short.empty()) continue;
    account.is_cut_short = true;
    account.warnings.push_back("This is not all of " + NameOf(of) + ": " + of.cut_short +
                               ". What comes before that is counted.");
  }
  if (account.lines > blank) {
    account.left_out_share =
        static_cast<double>(account.left_out) / static_cast<double>(account.lines - blank);
  }
  if (account.left_out > 0) {
    std::string text = Number(account.left_out) + " of " + Number(account.lines) +
                       " lines were left out, which is " +
                       WriteValue(account.left_out_share, Unit::kPercent) + ".";
    if (late > 0) {
      text +=
          " Of these " + Number(late) + " came more than " + TextOf(horizon) +
          " after a line of a later time: a longer --horizon would take them in, unless it is the "
          "later time that is wrong.";
    }
    account.warnings.push_back(std::move(text));
  }
  account.sections.emplace_back(FilesTable(counts));
  Table examples = ExamplesTable(counts);
  if (!examples.rows.empty()) account.sections.emplace_back(std::move(examples));
  return account;
}

}  // namespace weir::lab
