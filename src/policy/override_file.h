// Files that give certain keys other limits, for lists that are too long for the policy itself.
//
// CSV (RFC 4180): the first line names the columns, in any order. `limit` is one of them, the
// others are attributes of the key; or there is one called `key`, which is the value of a key of
// one attribute. Lines that are empty or begin with # are passed over.
//
//   user,limit                  key,limit
//   acme,1000/min               192.0.2.7,10/s
//   "a, b and ""c""",50/min
//
// JSON lines: an object per line, with the same names and only texts as values.
//
//   {"user": "acme", "limit": "1000/min"}
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/result.h>

namespace weir {

inline constexpr std::size_t kMaxOverrideFileBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxOverrideRows = 5'000'000;
inline constexpr std::size_t kMaxOverrideRowBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxOverrideColumns = 64;
inline constexpr std::size_t kMaxOverrideProblems = 20;

enum class OverrideFormat : std::uint8_t { kCsv, kJsonLines };

// By the end of the name: .csv, .jsonl or .ndjson.
Result<OverrideFormat> OverrideFormatOf(std::string_view file_name);

// One row. What it refers to is there until the sink returns.
struct OverrideRow {
  std::uint32_t line;  // Where it begins, from 1.
  // Attribute and value, at least one. Attributes are spelled as ToString(Attribute) does, and the
  // one that `key` stands for is empty. Values that are empty are left out.
  std::span<const std::pair<std::string_view, std::string_view>> key;
  std::string_view limit;  // Not empty, and not looked into.
};

using OverrideSink = std::function<void(const OverrideRow&)>;

struct OverrideFileProblem {
  enum class Kind : std::uint8_t {
    kSyntax,    // Not CSV or JSON.
    kEncoding,  // Not UTF-8.
    kTooLarge,  // Too many bytes, rows or columns.
    kColumns,   // More or fewer values than the header has names; or there is no header.
    kName,      // No attribute, or `key` beside other attributes.
    kDuplicateName,
    kType,     // A value that is no text.
    kNoKey,    // No name or no value for a key.
    kNoLimit,  // The same for the limit.
  };
  int line;  // From 1, as people and editors count.
  int column;
  Kind kind;
  std::string message;  // What is wrong and what to do.
};

// Calls the sink for each row, in their order; rows with a problem are left out. Ends after
// kMaxOverrideProblems.
std::vector<OverrideFileProblem> ReadOverrideFile(std::string_view text, OverrideFormat format,
                                                  const OverrideSink& sink);

}  // namespace weir
