// What the readers of CSV and of JSON lines share: the names that columns and fields may have, how
// rows get to the sink, and where a problem is.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/override_file.h"

namespace weir {

// What a column or field is for. Kept from row to row, so that names are looked into only when they
// change.
class OverrideName {
 public:
  enum class Meaning : std::uint8_t { kUnknown, kLimit, kKey, kAttribute };

  // The problem with it, or none.
  std::string Set(std::string_view name);

  Meaning meaning() const { return meaning_; }
  // As a row has it: empty for `key`.
  const std::string& attribute() const { return attribute_; }
  friend bool operator==(const OverrideName& a, const OverrideName& b) {
    return a.meaning_ == b.meaning_ && a.attribute_ == b.attribute_;
  }

 private:
  std::string written_;
  Meaning meaning_ = Meaning::kUnknown;
  std::string attribute_;
};

// Collects the values of a row, hands rows to the sink, and keeps the problems.
class OverrideRows {
 public:
  using Kind = OverrideFileProblem::Kind;

  OverrideRows(std::string_view text, const OverrideSink& sink);

  // Nothing more is wanted.
  bool done() const { return problems_.size() >= kMaxOverrideProblems || too_many_; }

  // A row begins here.
  void Begin(std::uint32_t line, const char* at);
  void Add(const OverrideName& name, std::string_view value);
  // The row ends here, and goes to the sink if it may.
  void End(const char* at);

  // About a place of the text, at or behind where the row began.
  void Problem(Kind kind, const char* at, std::string message);

  std::vector<OverrideFileProblem> TakeProblems() { return std::move(problems_); }

 private:
  const char* LineStartOf(const char* at) const;

  std::string_view text_;
  const OverrideSink& sink_;
  std::vector<OverrideFileProblem> problems_;
  std::size_t rows_ = 0;
  bool too_many_ = false;

  std::uint32_t line_ = 1;
  const char* start_;
  std::vector<std::pair<std::string_view, std::string_view>> key_;
  std::string_view limit_;
};

// The two readers. The text is UTF-8, without a byte order mark.
void ReadOverrideCsv(std::string_view text, OverrideRows& rows);
void ReadOverrideJsonLines(std::string_view text, OverrideRows& rows);

}  // namespace weir
