// Paths of requests, and patterns of them.
//
// A backend takes /a//b, /a/./b, /a/%62 and /a/b/ for /a/b more often than not; a limit on /a/b
// that does not is one that everybody walks around. So paths are compared in one form: without
// query and fragment, characters decoded where that cannot change how the path reads and the other
// escapes in upper case, dot segments resolved, repeated slashes and one at the end dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/result.h>

namespace weir {

// The path in that form. A view of `raw` where it has that form already; else made in `buffer`,
// which needs room for raw.size() + 1. Always starts with a slash, except that nothing stays
// nothing. What has none gets one (`*` is /*), but of http://host/path it is the /path.
//
// RFC 3986 would decode letters, digits and -._~ only. Routers decode more, and whoever could write
// /v1/a%3Ab for /v1/a:b, or a%40b.org for a@b.org, would have a limit of their own for it. So only
// the escapes of / % ? # and of control characters stay. A % that begins no escape stays as well.
std::string_view NormalizePath(std::string_view raw, std::span<char> buffer) noexcept;

// Takes the first segment off a path in that form; there is one unless the path is "/" or empty.
// What is left of the last is empty.
inline std::string_view TakeSegment(std::string_view& path) noexcept {
  // Segments are short: looking for the end by hand is faster than calling somebody who does.
  std::size_t end = 1;
  while (end < path.size() && path[end] != '/') ++end;
  const std::string_view segment = path.substr(1, end - 1);
  path.remove_prefix(end);
  return segment;
}

// Whether `text` fits a `pattern` in which each `*` stands for any run of characters, none
// included. Takes at most pattern times text steps.
bool FitsGlob(std::string_view pattern, std::string_view text) noexcept;

// /auth/login          exactly this
// /files/*/meta        any one segment
// /files/*.json        part of a segment
// /users/{id}/orders   any one segment, with a name
// /search/**           everything below, and /search itself; at most once, also in the middle
//
// Patterns are for paths in the form above. A literal `*`, `{` or `}` is written as an escape.
//
// Immutable once made; safe to share.
class PathPattern {
 public:
  // The error says what is wrong and what is allowed. A pattern is brought into the form above as
  // far as it is literal, and must start with a slash.
  static Result<PathPattern> Parse(std::string_view text);

  bool Fits(std::string_view path) const noexcept;
  // What stands where the pattern has {name}; empty if the path does not fit or there is no such
  // name.
  std::string_view Segment(std::string_view path, std::string_view name) const noexcept;
  bool HasName(std::string_view name) const noexcept;

  enum class SegmentKind : std::uint8_t { kLiteral, kGlob, kAny, kRest };
  struct PatternSegment {
    SegmentKind kind;
    std::string text;  // Literal or glob; the name of {name}, empty for `*`.
    friend bool operator==(const PatternSegment&, const PatternSegment&) = default;
  };
  const std::vector<PatternSegment>& segments() const noexcept { return segments_; }
  bool IsLiteral() const noexcept;
  std::string ToString() const;     // As Parse reads it. Of a literal one not always the path.
  std::string LiteralPath() const;  // The one path that fits a literal one.

  // Whether every path that fits `other` also fits this one. May say no where the answer is yes,
  // never the other way round.
  bool Covers(const PathPattern& other) const;

  friend bool operator==(const PathPattern&, const PathPattern&) = default;

  static constexpr std::size_t kMaxSegments = 128;

 private:
  bool Walk(std::string_view path, std::string_view name, std::string_view& found) const noexcept;

  std::vector<PatternSegment> segments_;
  std::size_t before_rest_ = 0;  // How many come before the `**`; all if there is none.
};

}  // namespace weir
