// The key of a count as text: who is being limited, as stores, logs and people see it.
//
//   user=acme&path.project=42      a part is NAME=VALUE
//   user=acme&header.x-team=       the second part is absent; a value that is there is never empty
//   api_key~=5f3c...               only a keyed hash of the value is kept
//   global                         a key without parts
//   ~9a41...                       above 96 bytes: 32 digits of the SHA-256 of what it would be
//
// Names and values keep the bytes [A-Za-z0-9._@-]; the others become %XX. So no two keys have the
// same text, whatever clients put into the values; and it holds no braces, blanks or bytes outside
// ASCII, so it can stand between the braces of a Redis key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policy/sha256.h"

namespace weir {

inline constexpr std::size_t kMostSubjectBytes = 96;
inline constexpr std::string_view kGlobalSubject = "global";

// Bytes of a name or value as a subject has them.
std::string EncodeForSubject(std::string_view text);

// Builds one subject after the other, in place: it never allocates, however long the values are.
//
//   writer.Begin();
//   writer.Add("user", "acme");
//   store.Check(writer.Finish());
class SubjectWriter {
 public:
  // Longer text goes through the buffer in pieces.
  static constexpr std::size_t kBufferBytes = 512;

  // As if Begin was called. Not defaulted, or `SubjectWriter writer{}` would clear the buffer.
  SubjectWriter() noexcept : buffer_(own_) {}  // NOLINT
  // In a place of the caller's, so that what is finished need not be copied.
  explicit SubjectWriter(std::span<char, kBufferBytes> place) noexcept  // NOLINT
      : buffer_(place.data()) {}
  SubjectWriter(const SubjectWriter&) = delete;
  SubjectWriter& operator=(const SubjectWriter&) = delete;

  void Begin() noexcept;
  // An empty value is an absent one.
  void Add(std::string_view name, std::string_view value) noexcept;
  // Never the same as Add of the same digits.
  void AddHashed(std::string_view name, std::string_view hex) noexcept;
  // The same with a name that EncodeForSubject has been over.
  void AddEncodedName(std::string_view encoded_name, std::string_view value) noexcept {
    // The name, the value if all of it must be encoded, and what stands between them.
    const std::size_t most = encoded_name.size() + kMostEncodedBytes * value.size() + 2;
    if (most > kBufferBytes - used_) [[unlikely]] {
      AddLongPart(encoded_name, value);
      return;
    }
    char* out = buffer_ + used_;
    if (any_parts_) *out++ = '&';
    any_parts_ = true;
    out = CopyShort(encoded_name, out);
    *out++ = '=';
    used_ = static_cast<std::size_t>(Encode(value, out) - buffer_);
  }
  void AddHashedEncodedName(std::string_view encoded_name, std::string_view hex) noexcept;
  // Valid until the next Begin, which is all that may be called after it.
  std::string_view Finish() noexcept {
    const bool short_enough = any_parts_ && !flushed_ && used_ <= kMostSubjectBytes;
    if (short_enough) [[likely]]
      return {buffer_, used_};
    return FinishOther();
  }

 private:
  static constexpr std::size_t kMostEncodedBytes = 3;  // Of one byte: %XX.

  // The end of what was written. For a few bytes, without calling anybody.
  static char* CopyShort(std::string_view text, char* out) noexcept {
    const std::size_t size = text.size();
    if (size > 16) [[unlikely]] {
      std::memcpy(out, text.data(), size);
    } else if (size >= 8) {
      CopyEnds<std::uint64_t>(text, out);
    } else if (size >= 4) {
      CopyEnds<std::uint32_t>(text, out);
    } else {
      for (std::size_t i = 0; i < size; ++i) out[i] = text[i];
    }
    return out + size;
  }
  // The first bytes and the last, which may overlap.
  template <typename Part>
  static void CopyEnds(std::string_view text, char* out) noexcept {
    Part first = 0;
    Part last = 0;
    std::memcpy(&first, text.data(), sizeof(Part));
    std::memcpy(&last, text.data() + text.size() - sizeof(Part), sizeof(Part));
    std::memcpy(out, &first, sizeof(Part));
    std::memcpy(out + text.size() - sizeof(Part), &last, sizeof(Part));
  }
  // `out` must have room for kMostEncodedBytes of each. The end of what was written.
  static char* Encode(std::string_view text, char* out) noexcept;
  friend std::string EncodeForSubject(std::string_view text);

  void AddLongPart(std::string_view encoded_name, std::string_view value) noexcept;
  std::string_view FinishOther() noexcept;
  void StartPart() noexcept;
  void AppendByte(char c) noexcept;
  void Append(std::string_view plain) noexcept;
  void AppendEncoded(std::string_view text) noexcept;
  // Hands the buffer over to the hash.
  void Flush() noexcept;

  char own_[kBufferBytes];
  char* const buffer_;
  std::size_t used_ = 0;
  bool any_parts_ = false;
  std::optional<Sha256> flushed_{};  // What the buffer did not hold, if there was too much.
};

}  // namespace weir
