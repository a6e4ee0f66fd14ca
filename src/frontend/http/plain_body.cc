#include "frontend/http/plain_body.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "frontend/http/body_fields.h"
#include "policy/address.h"

namespace weir {
namespace {

// What ends a text, or may not stand in it as it is, or must be looked at more closely.
bool IsSpecial(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte >= 0x80 || c == '"' || c == '\\';
}

// The first such byte from `p` on; `end` if there is none. Eight bytes at a time.
const char* FindSpecial(const char* p, const char* end) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  if constexpr (std::endian::native == std::endian::little) {
    for (; end - p >= 8; p += 8) {
      std::uint64_t bytes;
      std::memcpy(&bytes, p, 8);
      const std::uint64_t quote = bytes ^ ('"' * kOnes);
      const std::uint64_t backslash = bytes ^ ('\\' * kOnes);
      // The highest bit of each byte that is one, or comes behind one: only the lowest is certain.
      const std::uint64_t found =
          ((bytes - 0x20 * kOnes) | (quote - kOnes) | (backslash - kOnes) | bytes) & kHighs;
      if (found != 0) return p + std::countr_zero(found) / 8;
    }
  }
  while (p != end && !IsSpecial(*p)) ++p;
  return p;
}

class PlainBody {
 public:
  PlainBody(std::string_view json, const RequestBodyReader::Form& form, RequestBody& body) noexcept
      : p_(json.data()), end_(p_ + json.size()), form_(form), body_(body) {}

  bool Read() noexcept {
    if (!Take('{')) return false;
    do {
      std::string_view name;
      if (!TakeText(name) || !Take(':') || !ReadField(name)) return false;
    } while (Take(','));
    if (!Take('}')) return false;
    SkipBlanks();
    return p_ == end_ && (form_.required & ~body_.seen) == 0;
  }

 private:
  bool ReadField(std::string_view name) noexcept {
    const std::optional<BodyField> field = BodyFieldOf(name);
    if (!field || (SetOf(*field) & form_.allowed & ~body_.seen) == 0) return false;
    body_.seen |= SetOf(*field);
    if (*field == BodyField::kCost) return TakeCost();
    std::string_view* const text = TextOf(body_, *field);
    if (text == nullptr || !TakeText(*text)) return false;
    return *field != BodyField::kIp || text->empty() || IpAddress::Parse(*text).has_value();
  }

  void SkipBlanks() noexcept {
    while (p_ != end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r' || *p_ == '\n')) ++p_;
  }

  // Mostly no blank stands before it.
  bool Take(char c) noexcept {
    if (p_ == end_ || *p_ != c) {
      SkipBlanks();
      if (p_ == end_ || *p_ != c) return false;
    }
    ++p_;
    return true;
  }

  bool TakeText(std::string_view& text) noexcept {
    if (!Take('"')) return false;
    const char* const begin = p_;
    p_ = FindSpecial(p_, end_);
    if (p_ == end_ || *p_ != '"') return false;
    text = {begin, static_cast<std::size_t>(p_ - begin)};
    ++p_;
    return true;
  }

  // Digits only, and so few that they are always in range.
  bool TakeCost() noexcept {
    constexpr std::ptrdiff_t kMostDigits = 15;
    SkipBlanks();
    const char* const begin = p_;
    body_.cost = 0;
    for (; p_ != end_ && *p_ >= '0' && *p_ <= '9'; ++p_) {
      if (p_ - begin == kMostDigits) return false;
      body_.cost = body_.cost * 10 + (*p_ - '0');
    }
    // JSON has no 007.
    return p_ - begin == 1 || (p_ != begin && *begin != '0');
  }

  const char* p_;
  const char* const end_;
  const RequestBodyReader::Form& form_;
  RequestBody& body_;
};

}  // namespace

bool ReadPlainBody(std::string_view json, const RequestBodyReader::Form& form,
                   RequestBody& body) noexcept {
  return PlainBody(json, form, body).Read();
}

}  // namespace weir
