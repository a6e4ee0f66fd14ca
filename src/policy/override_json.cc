// JSON lines: every line is one object, whose values are texts. simdjson does the reading.
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "limit/limit_words.h"
#include "policy/override_rows.h"

namespace weir {
namespace {

using FileProblemKind = OverrideFileProblem::Kind;
using NameMeaning = OverrideName::Meaning;
namespace ondemand = simdjson::ondemand;

class JsonLinesReader {
 public:
  JsonLinesReader(std::string_view text, OverrideRows& rows)
      : rows_(rows), end_(text.data() + text.size()) {
    names_.reserve(kMaxOverrideColumns);  // Rows refer to them, so they must not move.
  }

  void Read(std::string_view text) {
    for (std::uint32_t number = 1; !text.empty() && !rows_.done(); ++number) {
      line_ = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line_.size() + 1));
      if (line_.starts_with('#') || line_.find_first_not_of(" \t\r") == std::string_view::npos)
        continue;
      rows_.Begin(number,
                  line_.data());  // NOLINT(bugprone-suspicious-stringview-data-usage): a place
      if (ReadLine()) rows_.End(line_.data() + line_.size());
    }
  }

 private:
  bool Problem(FileProblemKind kind, const char* at, std::string message) {
    const auto offset = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(at - start_, 0, static_cast<std::ptrdiff_t>(line_.size())));
    rows_.Problem(kind, line_.data() + offset, std::move(message));
    return false;
  }

  // simdjson reads some bytes beyond the line, without caring what they are. Only the end of the
  // file must be copied to where there are such bytes.
  simdjson::padded_string_view Padded() {
    start_ = line_.data();
    auto room = static_cast<std::size_t>(end_ - start_);
    if (room < line_.size() + simdjson::SIMDJSON_PADDING) {
      last_.assign(line_).append(simdjson::SIMDJSON_PADDING, ' ');
      start_ = last_.data();
      room = last_.size();
    }
    return simdjson::padded_string_view(start_, line_.size(), room);
  }

  bool ReadLine() {
    start_ = line_.data();
    if (line_.size() > kMaxOverrideRowBytes) return true;  // Which the end of the row will see.
    fields_ = 0;
    ondemand::document document;
    ondemand::object object;
    if (parser_.iterate(Padded()).get(document) != simdjson::SUCCESS) return NotAnObject(start_);
    if (document.get_object().get(object) != simdjson::SUCCESS) return NotAnObject(start_);
    for (auto next : object) {
      ondemand::field field;
      if (std::move(next).get(field) != simdjson::SUCCESS) return NotAnObject(Where(document));
      if (!ReadField(field)) return false;
    }
    const char* junk = nullptr;
    if (document.current_location().get(junk) == simdjson::SUCCESS) {
      return Problem(FileProblemKind::kSyntax, junk,
                     "the line goes on after the end of the object");
    }
    return true;
  }

  bool ReadField(ondemand::field& field) {
    const char* const at = field.key().raw() - 1;  // With its quotes.
    std::string_view name;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return NotAnObject(at);
    if (!ReadName(name, at)) return false;
    std::string_view value;
    switch (field.value().get_string().get(value)) {
      case simdjson::SUCCESS:
        rows_.Add(names_[fields_ - 1], value);
        return true;
      case simdjson::INCORRECT_TYPE:
        return Problem(FileProblemKind::kType, at, Quoted(name) + " must be a text, in quotes");
      default:
        return NotAnObject(at);
    }
  }

  bool ReadName(std::string_view text, const char* at) {
    if (fields_ == names_.size()) {
      if (fields_ == kMaxOverrideColumns) {
        return Problem(
            FileProblemKind::kTooLarge, at,
            "there are more than " + std::to_string(kMaxOverrideColumns) + " names in the object");
      }
      names_.emplace_back();
    }
    OverrideName& name = names_[fields_];
    const std::string problem = name.Set(text);
    if (!problem.empty()) return Problem(FileProblemKind::kName, at, problem);
    for (std::size_t i = 0; i < fields_; ++i) {
      if (names_[i] == name) {
        return Problem(FileProblemKind::kDuplicateName, at, Quoted(text) + " is there twice");
      }
      if (name.meaning() != NameMeaning::kLimit && names_[i].meaning() != NameMeaning::kLimit &&
          name.meaning() != names_[i].meaning()) {
        return Problem(FileProblemKind::kName, at,
                       "key stands for the only attribute of a key; name the attributes instead");
      }
    }
    ++fields_;
    return true;
  }

  const char* Where(ondemand::document& document) const {
    const char* at = nullptr;
    return document.current_location().get(at) == simdjson::SUCCESS ? at : start_;
  }

  bool NotAnObject(const char* at) {
    return Problem(FileProblemKind::kSyntax, at,
                   "the line must be one JSON object of texts and nothing else, such as "
                   R"({"user": "acme", "limit": "1000/min"})");
  }

  OverrideRows& rows_;
  const char* const end_;
  ondemand::parser parser_;
  std::string_view line_;
  const char* start_ = nullptr;  // Of the line, where simdjson reads it.
  std::string last_;
  std::vector<OverrideName> names_;  // Of the row, and behind them those of rows that had more.
  std::size_t fields_ = 0;
};

}  // namespace

void ReadOverrideJsonLines(std::string_view text, OverrideRows& rows) {
  JsonLinesReader(text, rows).Read(text);
}

}  // namespace weir
