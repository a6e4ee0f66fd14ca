// Names and values out of a Cookie header and a query, one after the other.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <weir/request.h>

namespace weir {

// The cookies of one Cookie header. What has no `=` is left out. Quotes around a value are dropped,
// as servers do: else the same session would count twice, with and without them.
class CookieReader {
 public:
  explicit CookieReader(std::string_view header) noexcept : left_(header) {}
  std::optional<NamedValue> Next() noexcept;

 private:
  std::string_view left_;
};

// What stands behind the question mark of a path as it was sent.
std::string_view QueryOf(std::string_view path) noexcept;

// The pairs of a query, with `+` and %41 decoded; a percent sign that starts no escape stays. What
// has no `=` has an empty value; what has no name either is left out.
class QueryReader {
 public:
  // `buffer` keeps what had to be decoded and needs room for query.size(). A query in which nothing
  // has to be needs none.
  QueryReader(std::string_view query, std::span<char> buffer) noexcept
      : left_(query), buffer_(buffer) {}
  static bool NeedsBuffer(std::string_view query) noexcept;

  std::optional<NamedValue> Next() noexcept;

 private:
  std::string_view Decoded(std::string_view text) noexcept;

  std::string_view left_;
  std::span<char> buffer_;  // What is left of it.
};

}  // namespace weir
