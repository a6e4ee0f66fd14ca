// Patterns of paths: read, compared with paths and with each other.
#include <algorithm>
#include <optional>
#include <utility>

#include "limit/limit_words.h"
#include "policy/path.h"

namespace weir {
namespace {

using SegmentKind = PathPattern::SegmentKind;
using Segment = PathPattern::PatternSegment;

constexpr std::string_view kRest = "**";
constexpr std::string_view kSpecial = "*{}";

bool IsIdentifier(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Part of a segment with its escapes as NormalizePath has them. The letter before it keeps dots
// from being a dot segment.
std::string Decoded(std::string_view part) {
  const std::string raw = "/x" + std::string(part);
  std::string buffer(raw.size() + 1, '\0');
  return std::string(NormalizePath(raw, buffer).substr(2));
}

class PatternReader {
 public:
  // Reads one segment; false leaves a problem.
  bool Read(std::string_view raw) {
    if (raw == kRest) return AddRest();
    if (raw.contains('{') || raw.contains('}')) {
      return AddNamed(raw);
    }
    if (raw == "*") return Add({SegmentKind::kAny, ""});
    if (raw.contains('*')) return AddGlob(raw);
    std::string text = Decoded(raw);
    if (text.empty() || text == ".") return true;
    if (text == "..") return Fail("write the path without \"..\"");
    return Add({SegmentKind::kLiteral, std::move(text)});
  }

  std::vector<Segment> segments{};
  std::string problem{};

 private:
  bool Add(Segment segment) {
    if (segments.size() == PathPattern::kMaxSegments) {
      return Fail("there may be " + std::to_string(PathPattern::kMaxSegments) + " segments");
    }
    segments.push_back(std::move(segment));
    return true;
  }

  bool AddRest() {
    if (std::ranges::find(segments, SegmentKind::kRest, &Segment::kind) != segments.end()) {
      return Fail("\"**\" may be there only once; \"*\" stands for one segment");
    }
    return Add({SegmentKind::kRest, ""});
  }

  bool AddNamed(std::string_view raw) {
    const bool whole = raw.size() > 2 && raw.front() == '{' && raw.back() == '}';
    const std::string_view name = whole ? raw.substr(1, raw.size() - 2) : "";
    if (!IsIdentifier(name)) {
      return Fail(Quoted(raw) +
                  " is no {name}: a name is letters, digits and _ without a digit first, and "
                  "stands for a whole segment; a brace itself is %7B or %7D");
    }
    for (const Segment& segment : segments) {
      if (segment.kind == SegmentKind::kAny && segment.text == name) {
        return Fail("the name {" + std::string(name) + "} is there twice");
      }
    }
    return Add({SegmentKind::kAny, std::string(name)});
  }

  bool AddGlob(std::string_view raw) {
    if (raw.contains(kRest)) {
      return Fail("\"**\" stands for whole segments: write /**/ or a single *");
    }
    std::string text;
    while (true) {
      const std::size_t star = raw.find('*');
      const std::string part = Decoded(raw.substr(0, star));
      if (part.contains('*')) {
        return Fail("%2A cannot stand beside * in one segment");
      }
      text += part;
      if (star == std::string_view::npos) return Add({SegmentKind::kGlob, std::move(text)});
      text += '*';
      raw.remove_prefix(star + 1);
    }
  }

  bool Fail(std::string what) {
    problem = std::move(what);
    return false;
  }
};

std::string_view TakeLast(std::string_view& rest) noexcept {
  const std::size_t slash = rest.rfind('/');
  const std::string_view segment = rest.substr(slash + 1);
  rest.remove_suffix(rest.size() - slash);
  return segment;
}

bool FitsSegment(const Segment& segment, std::string_view text) noexcept {
  switch (segment.kind) {
    case SegmentKind::kLiteral:
      return segment.text == text;
    case SegmentKind::kGlob:
      return FitsGlob(segment.text, text);
    case SegmentKind::kAny:
    case SegmentKind::kRest:
      break;
  }
  return true;
}

// Neither is `**`.
bool SegmentCovers(const Segment& wide, const Segment& narrow) {
  if (wide.kind == SegmentKind::kAny) return true;
  if (narrow.kind == SegmentKind::kAny) return false;
  if (wide.kind == SegmentKind::kLiteral) return wide == narrow;
  // A star of a narrow glob can only be taken by one of the wide glob, which then takes whatever
  // the narrow one does; so this tells of globs as well as of texts.
  return FitsGlob(wide.text, narrow.text);
}

}  // namespace

Result<PathPattern> PathPattern::Parse(std::string_view text) {
  const auto failed = [&](const std::string& problem) {
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument, "path pattern " + Quoted(text) + ": " + problem});
  };
  if (!text.starts_with('/')) return failed("it must start with /");
  if (text.find_first_of("?#") != std::string_view::npos) {
    return failed("a path is compared without query and fragment; test query.NAME instead");
  }
  PatternReader reader;
  for (std::string_view rest = text; !rest.empty();) {
    if (!reader.Read(TakeSegment(rest))) return failed(reader.problem);
  }
  PathPattern pattern;
  pattern.segments_ = std::move(reader.segments);
  const auto rest = std::ranges::find(pattern.segments_, SegmentKind::kRest, &PatternSegment::kind);
  pattern.before_rest_ = static_cast<std::size_t>(rest - pattern.segments_.begin());
  return pattern;
}

// Compares from the start up to `**`, then from the end back to it, so that it takes as many steps
// as the pattern has segments however many the path has.
bool PathPattern::Walk(std::string_view path, std::string_view name,
                       std::string_view& found) const noexcept {
  if (!path.starts_with('/')) return false;
  std::string_view rest = path == "/" ? "" : path;
  const auto fits = [&](const PatternSegment& segment, std::string_view text) {
    if (segment.kind == SegmentKind::kAny && !name.empty() && segment.text == name) found = text;
    return FitsSegment(segment, text);
  };
  for (std::size_t i = 0; i < before_rest_; ++i) {
    if (rest.empty() || !fits(segments_[i], TakeSegment(rest))) return false;
  }
  if (before_rest_ == segments_.size()) return rest.empty();
  for (std::size_t i = segments_.size() - 1; i > before_rest_; --i) {
    if (rest.empty() || !fits(segments_[i], TakeLast(rest))) return false;
  }
  return true;
}

bool PathPattern::Fits(std::string_view path) const noexcept {
  std::string_view unused;
  return Walk(path, {}, unused);
}

std::string_view PathPattern::Segment(std::string_view path, std::string_view name) const noexcept {
  std::string_view found;
  return Walk(path, name, found) ? found : std::string_view();
}

bool PathPattern::HasName(std::string_view name) const noexcept {
  return !name.empty() && std::ranges::any_of(segments_, [&](const PatternSegment& segment) {
    return segment.kind == SegmentKind::kAny && segment.text == name;
  });
}

bool PathPattern::IsLiteral() const noexcept {
  return std::ranges::all_of(
      segments_, [](SegmentKind kind) { return kind == SegmentKind::kLiteral; },
      &PatternSegment::kind);
}

std::string PathPattern::LiteralPath() const {
  std::string path;
  for (const PatternSegment& segment : segments_) path += "/" + segment.text;
  return path.empty() ? "/" : path;
}

std::string PathPattern::ToString() const {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const PatternSegment& segment : segments_) {
    text += '/';
    if (segment.kind == SegmentKind::kRest) text += kRest;
    if (segment.kind == SegmentKind::kAny)
      text += segment.text.empty() ? "*" : "{" + segment.text + "}";
    if (segment.kind == SegmentKind::kRest || segment.kind == SegmentKind::kAny) continue;
    for (const char c : segment.text) {
      const bool star_of_glob = segment.kind == SegmentKind::kGlob && c == '*';
      if (star_of_glob || !kSpecial.contains(c)) {
        text += c;
      } else {
        text += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 0xf]};
      }
    }
  }
  return text.empty() ? "/" : text;
}

bool PathPattern::Covers(const PathPattern& other) const {
  const std::span<const PatternSegment> narrow(other.segments_);
  const std::span<const PatternSegment> wide(segments_);
  const auto covers = [](const PatternSegment& a, const PatternSegment& b) {
    return SegmentCovers(a, b);
  };
  const bool has_rest = before_rest_ < wide.size();
  const bool other_has_rest = other.before_rest_ < narrow.size();
  if (!has_rest) return !other_has_rest && std::ranges::equal(wide, narrow, covers);

  // What is sure to stand at the start and at the end of the other's paths, without overlapping.
  const std::span<const PatternSegment> after = wide.subspan(before_rest_ + 1);
  const std::size_t starts = other.before_rest_;
  if (starts < before_rest_) return false;
  const std::size_t ends = other_has_rest ? narrow.size() - starts - 1 : starts - before_rest_;
  if (ends < after.size()) return false;
  return std::ranges::equal(wide.first(before_rest_), narrow.first(before_rest_), covers) &&
         std::ranges::equal(after, narrow.last(after.size()), covers);
}

}  // namespace weir
