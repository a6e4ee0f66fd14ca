// Formats whose lines are rows of columns that have an order: CSV with a heading, and the log of an
// AWS load balancer, whose columns are known. A line is a row: a quoted newline ends it, too.
#include <algorithm>
#include <cstring>

#include "lab/log/line_parser.h"

namespace weir::lab {
namespace {

using Kind = LineResult::Kind;

// As documented for application load balancers; newer ones may add some behind these.
constexpr std::string_view kAlbColumns[] = {"type",
                                            "time",
                                            "elb",
                                            "client:port",
                                            "target:port",
                                            "request_processing_time",
                                            "target_processing_time",
                                            "response_processing_time",
                                            "elb_status_code",
                                            "target_status_code",
                                            "received_bytes",
                                            "sent_bytes",
                                            "request",
                                            "user_agent",
                                            "ssl_cipher",
                                            "ssl_protocol",
                                            "target_group_arn",
                                            "trace_id",
                                            "domain_name",
                                            "chosen_cert_arn",
                                            "matched_rule_priority",
                                            "request_creation_time",
                                            "actions_executed",
                                            "redirect_url",
                                            "error_reason",
                                            "target:port_list",
                                            "target_status_code_list",
                                            "classification",
                                            "classification_reason",
                                            "conn_trace_id"};
// Up to the user agent.
constexpr std::size_t kFewestAlbColumns = 14;

struct RowPlan {
  std::string_view format;
  char delimiter = ',';
  bool doubled_quotes = true;  // Else \" stands for a quote.
  bool blanks_are_nothing = true;
  std::size_t fewest = 1;
  std::size_t most = 0;  // 0: there may be any more.
  std::vector<ColumnUse> uses{};
  std::size_t wanted = 0;
};

class RowCutter {
 public:
  RowCutter(const RowPlan& plan, std::string_view line) : plan_(plan), line_(line) {}

  bool at_end() const noexcept { return ended_; }
  bool is_broken() const noexcept { return broken_; }

  std::string_view Next(Texts& texts) {
    at_ = SkipBlanks(at_);
    if (at_ < line_.size() && line_[at_] == '"') return NextQuoted(texts);
    const void* const found =
        at_ < line_.size() ? std::memchr(line_.data() + at_, plan_.delimiter, line_.size() - at_)
                           : nullptr;
    const std::size_t end =
        found == nullptr ? line_.size()
                         : static_cast<std::size_t>(static_cast<const char*>(found) - line_.data());
    std::string_view value = line_.substr(std::min(at_, end), end - std::min(at_, end));
    while (!value.empty() && IsBlank(value.back())) value.remove_suffix(1);
    MoveTo(end);
    return value;
  }

 private:
  // People write blanks behind commas; they belong to no value.
  bool IsBlank(char c) const noexcept { return plan_.blanks_are_nothing && c == ' '; }
  std::size_t SkipBlanks(std::size_t at) const noexcept {
    while (at < line_.size() && IsBlank(line_[at])) ++at;
    return at;
  }

  void MoveTo(std::size_t end) {
    ended_ = end >= line_.size();
    at_ = end + 1;
  }

  std::string_view NextQuoted(Texts& texts) {
    const std::size_t from = at_ + 1;
    bool plain = true;
    std::size_t at = from;
    for (;; ++at) {
      if (at >= line_.size()) {
        broken_ = ended_ = true;
        return {};
      }
      if (!plan_.doubled_quotes && line_[at] == '\\' && at + 1 < line_.size()) {
        plain = false;
        ++at;
      } else if (line_[at] == '"') {
        if (!plan_.doubled_quotes || at + 1 >= line_.size() || line_[at + 1] != '"') break;
        plain = false;
        ++at;
      }
    }
    const std::string_view value = line_.substr(from, at - from);
    const std::size_t next = SkipBlanks(at + 1);
    if (next < line_.size() && line_[next] != plan_.delimiter) broken_ = true;
    MoveTo(next);
    if (plain) return value;
    return plan_.doubled_quotes ? Undouble(value, texts) : Unescape(value, texts);
  }

  static std::string_view Undouble(std::string_view value, Texts& texts) {
    char* const room = texts.Room(value.size());
    std::size_t size = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      room[size++] = value[i];
      if (value[i] == '"') ++i;
    }
    return {room, size};
  }

  const RowPlan& plan_;
  const std::string_view line_;
  std::size_t at_ = 0;
  bool ended_ = false;
  bool broken_ = false;
};

class RowParser final : public LineParser {
 public:
  explicit RowParser(const RowPlan& plan) : plan_(plan) {}

  LineResult Parse(std::string_view line, LogRecord& record, Texts& texts) override {
    if (SaysNothing(line)) return {.kind = Kind::kBlank};
    builder_.Begin(record, plan_.wanted, texts);
    RowCutter cutter(plan_, line);
    std::size_t column = 0;
    for (; !cutter.at_end(); ++column) {
      const std::string_view value = cutter.Next(texts);
      if (column < plan_.uses.size() && plan_.uses[column].is_used()) {
        builder_.Take(plan_.uses[column], value);
      }
    }
    if (cutter.is_broken()) return {.kind = Kind::kUnparsed, .why = "a quote that does not end"};
    if (column < plan_.fewest) return {.kind = Kind::kUnparsed, .why = "too few columns"};
    if (plan_.most != 0 && column > plan_.most) {
      return {.kind = Kind::kUnparsed, .why = "more columns than the heading has"};
    }
    return builder_.Finish();
  }

 private:
  const RowPlan& plan_;
  RecordBuilder builder_;
};

class RowFormat final : public LineFormat {
 public:
  explicit RowFormat(RowPlan plan) : plan_(std::move(plan)) {}
  std::string_view name() const override { return plan_.format; }
  std::unique_ptr<LineParser> MakeParser() const override {
    return std::make_unique<RowParser>(plan_);
  }

 private:
  const RowPlan plan_;
};

Result<void> FillIn(RowPlan& plan, const std::vector<std::string>& columns,
                    const ColumnNames& names) {
  const UsualNames& usual = UsualNamesOf(plan.format);
  for (const std::string& column : columns) plan.uses.push_back(UseOf(column, usual, names));
  plan.wanted = names.wanted.size();
  for (const auto& [field, column] : names.named) {
    if (std::ranges::find(columns, column) != columns.end()) continue;
    std::string message = "--column ";
    message += field;
    message += "=" + column;
    message += ": there is no such column; there are " + ListOfColumns(columns);
    return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
  }
  const bool has_time = std::ranges::any_of(plan.uses, [](const ColumnUse& use) {
    return std::ranges::any_of(use.fields, [](auto says) { return says.field == Field::kTime; });
  });
  if (has_time) return {};
  return std::unexpected(Error{ErrorCode::kInvalidArgument, NoTimeAmong(columns)});
}

}  // namespace

Result<std::unique_ptr<LineFormat>> MakeAlbFormat(const ColumnNames& names) {
  RowPlan plan{.format = "alb",
               .delimiter = ' ',
               .doubled_quotes = false,
               .blanks_are_nothing = false,
               .fewest = kFewestAlbColumns};
  std::vector<std::string> columns(std::begin(kAlbColumns), std::end(kAlbColumns));
  if (Result<void> right = FillIn(plan, columns, names); !right) {
    return std::unexpected(right.error());
  }
  return std::make_unique<RowFormat>(std::move(plan));
}

Result<std::unique_ptr<LineFormat>> MakeCsvFormat(std::string_view heading,
                                                  const ColumnNames& names) {
  RowPlan plan{.format = "csv"};
  std::ptrdiff_t most = std::ranges::count(heading, ',');
  for (const char other : {';', '\t'}) {
    if (std::ranges::count(heading, other) > most) {
      most = std::ranges::count(heading, other);
      plan.delimiter = other;
    }
  }
  Texts texts;
  std::vector<std::string> columns;
  for (RowCutter cutter(plan, heading); !cutter.at_end();) {
    columns.emplace_back(cutter.Next(texts));
  }
  plan.most = columns.size();
  if (Result<void> right = FillIn(plan, columns, names); !right) {
    return std::unexpected(right.error());
  }
  return std::make_unique<RowFormat>(std::move(plan));
}

}  // namespace weir::lab
