// CSV as RFC 4180 has it, with lines that end in LF or CRLF: a value in quotes may hold commas,
// line ends and doubled quotes.
#include <algorithm>
#include <array>

#include "limit/limit_words.h"
#include "policy/override_rows.h"

namespace weir {
namespace {

using FileProblemKind = OverrideFileProblem::Kind;
using NameMeaning = OverrideName::Meaning;

constexpr std::array<bool, 256> kEndsPlainValue = [] {
  std::array<bool, 256> ends{};
  for (const char c : {',', '\n', '\r', '"'}) ends[static_cast<unsigned char>(c)] = true;
  return ends;
}();

class CsvReader {
 public:
  CsvReader(std::string_view text, OverrideRows& rows)
      : rows_(rows), at_(text.data()), end_(text.data() + text.size()) {}

  void Read() {
    SkipLinesWithoutRow();
    if (at_ == end_) {
      return rows_.Problem(FileProblemKind::kColumns, at_,
                           "there is no header; the first line names the columns: user,limit");
    }
    BeginRow();
    if (!ReadValues(kMaxOverrideColumns) || !ReadNames()) return;
    SkipLinesWithoutRow();
    while (at_ != end_ && !rows_.done()) {
      ReadRow();
      SkipLinesWithoutRow();
    }
  }

 private:
  struct Value {
    std::string_view text;
    const char* at;
  };

  bool Problem(FileProblemKind kind, const char* at, std::string message) {
    rows_.Problem(kind, at, std::move(message));
    return false;
  }

  void BeginRow() {
    values_.clear();
    rows_.Begin(line_, at_);
  }

  void ReadRow() {
    BeginRow();
    if (!ReadValues(names_.size())) return SkipLine();
    if (values_.size() < names_.size()) {
      Problem(FileProblemKind::kColumns, values_end_,
              "the row has " + std::to_string(values_.size()) + " values, but the header names " +
                  std::to_string(names_.size()) + " columns");
      return;
    }
    for (std::size_t i = 0; i < names_.size(); ++i) rows_.Add(names_[i], values_[i].text);
    rows_.End(values_end_);
  }

  // What the columns of the header are for.
  bool ReadNames() {
    bool good = true;
    for (const Value& value : values_) {
      OverrideName name;
      const std::string problem = name.Set(value.text);
      if (!problem.empty()) {
        good = Problem(FileProblemKind::kName, value.at, problem);
      } else if (std::ranges::find(names_, name) != names_.end()) {
        good = Problem(FileProblemKind::kDuplicateName, value.at,
                       "the column " + Quoted(value.text) + " is there twice");
      }
      names_.push_back(std::move(name));
    }
    return good && CheckNames();
  }

  bool CheckNames() {
    const auto count = [this](NameMeaning meaning) {
      return std::ranges::count(names_, meaning, &OverrideName::meaning);
    };
    const char* start = values_.front().at;
    if (count(NameMeaning::kLimit) == 0) {
      return Problem(FileProblemKind::kNoLimit, start, "the header must name a column limit");
    }
    if (names_.size() == 1) {
      return Problem(FileProblemKind::kNoKey, start,
                     "the header must name a column for the key: an attribute, or key");
    }
    if (count(NameMeaning::kKey) > 0 && names_.size() > 2) {
      return Problem(FileProblemKind::kName, start,
                     "key stands for the only attribute of a key; name the attributes instead");
    }
    return true;
  }

  // Reads up to the end of the row and past it. If not, there was a problem at at_.
  bool ReadValues(std::size_t most) {
    while (true) {
      if (values_.size() == most) {
        return Problem(
            most == kMaxOverrideColumns ? FileProblemKind::kTooLarge : FileProblemKind::kColumns,
            at_, "there are more than " + std::to_string(most) + " columns");
      }
      const bool quoted = at_ != end_ && *at_ == '"';
      if (!(quoted ? ReadQuoted() : ReadPlain())) return false;
      if (at_ == end_ || *at_ != ',') break;
      ++at_;
    }
    values_end_ = at_;
    if (at_ != end_ && *at_ == '\r') ++at_;
    if (at_ != end_ && *at_ == '\n') {
      ++at_;
      ++line_;
    }
    return true;
  }

  // Whether a value may end here: before a comma, at the end of the line, or of the file.
  bool AtValueEnd() const {
    if (at_ == end_ || *at_ == ',' || *at_ == '\n') return true;
    return *at_ == '\r' && (at_ + 1 == end_ || at_[1] == '\n');
  }

  bool ReadPlain() {
    const char* const start = at_;
    while (at_ != end_ && !kEndsPlainValue[static_cast<unsigned char>(*at_)]) ++at_;
    if (!AtValueEnd()) {
      return Problem(FileProblemKind::kSyntax, at_,
                     *at_ == '"' ? "a value with quotes in it must be in quotes, and those in it "
                                   "doubled"
                                 : "a carriage return must be in quotes, or end the line with a "
                                   "line feed");
    }
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    if (at_ != start && (is_blank(*start) || is_blank(at_[-1]))) {
      return Problem(FileProblemKind::kSyntax, start,
                     "blanks around a value would be part of it, and never match; remove them, or "
                     "put the value in quotes if they are meant");
    }
    values_.push_back({{start, at_}, start});
    return true;
  }

  bool ReadQuoted() {
    const char* const start = at_++;
    std::string* text = nullptr;  // Only if it is not what stands in the file.
    const char* piece = at_;
    while (true) {
      at_ = std::find(at_, end_, '"');
      if (at_ == end_)
        return Problem(FileProblemKind::kSyntax, start, "these quotes are never closed");
      if (at_ + 1 == end_ || at_[1] != '"') break;
      if (text == nullptr) text = &ClearedText();
      text->append(piece, ++at_);
      piece = ++at_;
    }
    line_ += static_cast<std::uint32_t>(std::count(start, at_, '\n'));
    if (text != nullptr) text->append(piece, at_);
    values_.push_back({text != nullptr ? *text : std::string_view(piece, at_), start});
    ++at_;
    if (AtValueEnd()) return true;
    return Problem(FileProblemKind::kSyntax, at_,
                   "after closing quotes there must be a comma or the end of the line; quotes "
                   "within a value are doubled");
  }

  // One text for each column, so that they stay where they are until the row ends.
  std::string& ClearedText() {
    std::string& text = texts_[values_.size()];
    text.clear();
    return text;
  }

  void SkipLine() {
    at_ = std::find(at_, end_, '\n');
    if (at_ == end_) return;
    ++at_;
    ++line_;
  }

  void SkipLinesWithoutRow() {
    while (at_ != end_) {
      const bool empty = *at_ == '\n' || (*at_ == '\r' && at_ + 1 != end_ && at_[1] == '\n');
      if (!empty && *at_ != '#') return;
      SkipLine();
    }
  }

  OverrideRows& rows_;
  const char* at_;
  const char* const end_;
  std::uint32_t line_ = 1;  // Of at_.
  std::vector<OverrideName> names_;
  std::vector<Value> values_;
  const char* values_end_ = nullptr;                    // Before the end of the line.
  std::array<std::string, kMaxOverrideColumns> texts_;  // Values without doubled quotes.
};

}  // namespace

void ReadOverrideCsv(std::string_view text, OverrideRows& rows) { CsvReader(text, rows).Read(); }

}  // namespace weir
