#include "policy/path.h"

#include <emmintrin.h>

#include <array>
#include <bit>

#include "policy/ascii.h"

namespace weir {
namespace {

constexpr bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

constexpr unsigned ValueOf(char digit) {
  if (digit <= '9') return static_cast<unsigned>(digit - '0');
  return static_cast<unsigned>((digit | 0x20) - 'a') + 10;
}

constexpr bool IsEscape(std::string_view text, std::size_t at) {
  return text.size() - at > 2 && IsHexDigit(text[at + 1]) && IsHexDigit(text[at + 2]);
}

constexpr unsigned char EscapedAt(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(ValueOf(text[at + 1]) << 4 | ValueOf(text[at + 2]));
}

// Whether the character may stand for itself: it does not make another path of it, and is no
// control character, of which none shall come up that was not sent.
constexpr bool MayBeDecoded(unsigned char c) {
  return c >= ' ' && c != 0x7f && c != '/' && c != '%' && c != '?' && c != '#';
}

// The characters at which the scan for a normal form must look closer.
constexpr std::array<bool, 256> kStops = [] {
  std::array<bool, 256> stops{};
  for (const char c : {'/', '%', '?', '#'}) stops[static_cast<unsigned char>(c)] = true;
  return stops;
}();

constexpr bool EndsPath(char c) { return c == '?' || c == '#'; }

constexpr bool EndsSegment(std::string_view text, std::size_t at) {
  return at >= text.size() || text[at] == '/' || EndsPath(text[at]);
}

// Whether the segment at `at` goes away: an empty one that is not the last, `.` or `..`.
constexpr bool GoesAway(std::string_view raw, std::size_t at) {
  if (at >= raw.size()) return false;
  if (raw[at] == '/') return true;
  if (raw[at] != '.') return false;
  return EndsSegment(raw, at + 1) || (raw[at + 1] == '.' && EndsSegment(raw, at + 2));
}

constexpr std::size_t kBlock = sizeof(__m128i);
constexpr std::size_t kMostScanned = 64;

// The characters at which the scan must look closer, a bit for each.
std::uint64_t StopsAmong(const __m128i& bytes) noexcept {
  const auto is = [&](char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
  const __m128i stops =
      _mm_or_si128(_mm_or_si128(is('/'), is('%')), _mm_or_si128(is('?'), is('#')));
  return static_cast<unsigned>(_mm_movemask_epi8(stops));
}

std::uint64_t StopsInBlock(const char* block) noexcept {
  return StopsAmong(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block)));
}

// Of a text of half a block at least: its first bytes and its last, which overlap.
std::uint64_t StopsInHalves(std::string_view text) noexcept {
  constexpr std::size_t kHalf = kBlock / 2;
  const std::size_t last = text.size() - kHalf;
  const auto half = [&](std::size_t at) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(text.data() + at));
  };
  const std::uint64_t stops = StopsAmong(_mm_unpacklo_epi64(half(0), half(last)));
  return (stops & 0xff) | (stops >> kHalf) << last;
}

// Of a text of up to kMostScanned.
std::uint64_t StopsIn(std::string_view text) noexcept {
  std::uint64_t stops = 0;
  if (text.size() < kBlock / 2) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      stops |= std::uint64_t{kStops[static_cast<unsigned char>(text[i])]} << i;
    }
    return stops;
  }
  if (text.size() < kBlock) return StopsInHalves(text);
  for (std::size_t at = 0; at + kBlock <= text.size(); at += kBlock) {
    stops |= StopsInBlock(text.data() + at) << at;
  }
  const std::size_t last = text.size() - kBlock;  // Overlaps the others.
  return stops | StopsInBlock(text.data() + last) << last;
}

// How much of `raw` is the path, if it has its form already; else 0.
std::size_t NormalSize(std::string_view raw) noexcept {
  if (raw.front() != '/') return 0;
  std::size_t end = raw.size();
  for (std::size_t from = 0; from < end; from += kMostScanned) {
    std::uint64_t stops = StopsIn(raw.substr(from, kMostScanned));
    for (; stops != 0; stops &= stops - 1) {
      const std::size_t at = from + static_cast<std::size_t>(std::countr_zero(stops));
      const char c = raw[at];
      if (EndsPath(c)) {
        end = at;
        break;
      }
      if (c == '/') {
        if (GoesAway(raw, at + 1)) return 0;
      } else if (IsEscape(raw, at)) {
        const bool lower = raw[at + 1] >= 'a' || raw[at + 2] >= 'a';
        if (lower || MayBeDecoded(EscapedAt(raw, at))) return 0;
      }
    }
  }
  return end > 1 && raw[end - 1] == '/' ? end - 1 : end;
}

// Writes the normal form, one segment after the other.
class PathWriter {
 public:
  explicit PathWriter(std::span<char> buffer) noexcept : out_(buffer.data()) {}

  void Add(std::string_view raw) noexcept {
    const std::size_t slash = size_;
    out_[size_++] = '/';
    for (std::size_t at = 0; at < raw.size(); ++at) {
      if (raw[at] == '%' && IsEscape(raw, at)) {
        AddEscaped(raw, at, slash);
        at += 2;
      } else {
        out_[size_++] = raw[at];
      }
    }
    const std::string_view segment(out_ + slash + 1, size_ - slash - 1);
    if (segment == "..") {
      size_ = std::string_view(out_, slash).rfind('/');
      if (size_ == std::string_view::npos) size_ = 0;
    } else if (segment.empty() || segment == ".") {
      size_ = slash;
    }
  }

  std::string_view Finish() noexcept {
    if (size_ == 0) out_[size_++] = '/';
    return {out_, size_};
  }

 private:
  void AddEscaped(std::string_view raw, std::size_t at, std::size_t slash) noexcept {
    const unsigned char c = EscapedAt(raw, at);
    if (MayBeDecoded(c) && !WouldEscape(static_cast<char>(c), slash)) {
      out_[size_++] = static_cast<char>(c);
      return;
    }
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    out_[size_++] = '%';
    out_[size_++] = kDigits[c >> 4];
    out_[size_++] = kDigits[c & 0xf];
  }

  // Behind a % that begins no escape, a decoded digit would make it begin one: %%361 must not
  // become %61.
  bool WouldEscape(char c, std::size_t slash) const noexcept {
    if (!IsHexDigit(c)) return false;
    const std::string_view segment(out_ + slash + 1, size_ - slash - 1);
    if (segment.ends_with('%')) return true;
    return segment.size() >= 2 && segment[segment.size() - 2] == '%' && IsHexDigit(segment.back());
  }

  char* const out_;
  std::size_t size_ = 0;
};

// http://host/path as proxies get it, without http://host.
std::string_view WithoutOrigin(std::string_view raw) noexcept {
  if (!IsLetter(raw.front())) return raw;
  const std::size_t scheme_end = raw.find("://");
  if (scheme_end == std::string_view::npos) return raw;
  for (const char c : raw.substr(0, scheme_end)) {
    if (!IsLetter(c) && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.') return raw;
  }
  const std::size_t path = raw.find_first_of("/?#", scheme_end + 3);
  return path == std::string_view::npos ? "/" : raw.substr(path);
}

}  // namespace

std::string_view NormalizePath(std::string_view raw, std::span<char> buffer) noexcept {
  if (raw.empty()) return {};
  if (const std::size_t size = NormalSize(raw); size != 0) return raw.substr(0, size);
  std::string_view rest = WithoutOrigin(raw);
  rest = rest.substr(0, rest.find_first_of("?#"));
  PathWriter writer(buffer);
  while (true) {
    const std::size_t slash = rest.find('/');
    writer.Add(rest.substr(0, slash));
    if (slash == std::string_view::npos) return writer.Finish();
    rest.remove_prefix(slash + 1);
  }
}

bool FitsGlob(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // The last `*` seen,
  std::size_t taken = 0;                      // and up to where it takes the text.
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace weir
