// Which column of a log says what: the names that programs give them, and those a user gives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/result.h>

namespace weir::lab {

// What a column may say of a request.
enum class Field : std::uint8_t {
  kTime,
  kIp,
  kUser,
  kApiKey,
  kOrg,
  kTier,
  kMethod,
  kPath,
  kHost,
  kUserAgent,
  kStatus,
  kCost,
  kRequestLine,  // GET /search?q=x HTTP/1.1
};
inline constexpr std::size_t kFields = 13;

// By its name on a command line: time, ip, user and so on.
std::optional<Field> FieldNamed(std::string_view name);
// All of them, for messages.
std::string NamesOfFields();

struct ColumnUse {
  struct Says {
    Field field;
    std::uint8_t rank;  // Of the columns of a line that with the lowest speaks for a field.
  };
  std::vector<Says> fields{};
  std::vector<std::uint32_t> wanted{};  // Places in LogSettings::wanted that ask for it.

  bool is_used() const noexcept { return !fields.empty() || !wanted.empty(); }
};

// What somebody calls the columns, if not as is usual.
struct ColumnNames {
  std::vector<std::pair<std::string, std::string>> named{};  // {"user", "account_id"}
  std::vector<std::string> wanted{};
  bool user_agent = true;  // As LogSettings::user_agent.
};

// Of ASCII letters only, whatever the locale says.
constexpr char LowerCase(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Names that are usual in a format, the first first. Compared without regard to case.
using UsualNames = std::array<std::span<const std::string_view>, kFields>;
const UsualNames& UsualNamesOf(std::string_view format);

// header.NAME or cookie.NAME: what is so called among `wanted`.
bool IsNamedValue(std::string_view field) noexcept;

// An error names one that is not of the form FIELD=COLUMN, or a field that there is not.
Result<void> CheckNames(const ColumnNames& names);

// What a column of this name is good for.
ColumnUse UseOf(std::string_view column, const UsualNames& usual, const ColumnNames& names);

}  // namespace weir::lab
