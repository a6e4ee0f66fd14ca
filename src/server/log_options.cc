#include "server/log_options.h"

#include <charconv>
#include <optional>

#include "lab/log/log_columns.h"
#include "limit/limit_words.h"

namespace weir {
namespace {

std::unexpected<Error> Wrong(std::string_view option, std::string_view text, const char* what) {
  return std::unexpected(
      Error{ErrorCode::kInvalidArgument, std::string(option) + " " + Quoted(text) + ": " + what});
}

}  // namespace

Result<lab::LogSettings> SettingsOf(const LogOptions& options) {
  lab::LogSettings settings{
      .files = options.files, .format = options.format, .threads = options.threads};
  const std::optional<Duration> horizon =
      options.horizon == "0" ? Duration(0) : ParseLength(options.horizon);
  if (!horizon) return Wrong("--horizon", options.horizon, "write a time such as 60s or 10min");
  settings.horizon = *horizon;
  for (const std::string& column : options.columns) {
    const std::size_t equals = column.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == column.size()) {
      return Wrong("--column", column, "write NAME=COLUMN, as in user=account_id");
    }
    settings.columns.emplace_back(column.substr(0, equals), column.substr(equals + 1));
  }
  if (Result<void> right = lab::CheckNames({.named = settings.columns}); !right) {
    return std::unexpected(right.error());
  }
  return settings;
}

Result<double> ParsePercent(std::string_view option, std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  double percent = -1;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), percent,
                                    std::chars_format::fixed);
  const bool right = text.ends_with('%') && read.ec == std::errc() &&
                     read.ptr == digits.data() + digits.size() && percent >= 0 && percent <= 100;
  if (!right) return Wrong(option, text, "write a percentage from 0% to 100%, such as 0.1%");
  return percent / 100;
}

}  // namespace weir
