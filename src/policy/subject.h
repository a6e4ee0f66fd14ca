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
#include <optional>
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
  // As if Begin was called. Not defaulted, or `SubjectWriter writer{}` would clear the buffer.
  SubjectWriter() noexcept {}  // NOLINT
  SubjectWriter(const SubjectWriter&) = delete;
  SubjectWriter& operator=(const SubjectWriter&) = delete;

  void Begin() noexcept;
  // An empty value is an absent one.
  void Add(std::string_view name, std::string_view value) noexcept;
  // Never the same as Add of the same digits.
  void AddHashed(std::string_view name, std::string_view hex) noexcept;
  // The same with a name that EncodeForSubject has been over.
  void AddEncodedName(std::string_view encoded_name, std::string_view value) noexcept;
  void AddHashedEncodedName(std::string_view encoded_name, std::string_view hex) noexcept;
  // Valid until the next Begin, which is all that may be called after it.
  std::string_view Finish() noexcept;

 private:
  void StartPart() noexcept;
  void AppendByte(char c) noexcept;
  void Append(std::string_view plain) noexcept;
  void AppendEncoded(std::string_view text) noexcept;
  // Hands the buffer over to the hash.
  void Flush() noexcept;

  // Longer text goes through the buffer in pieces.
  static constexpr std::size_t kBufferBytes = 512;

  std::size_t used_ = 0;
  bool any_parts_ = false;
  std::array<char, kBufferBytes> buffer_;
  std::optional<Sha256> flushed_{};  // What the buffer did not hold, if there was too much.
};

}  // namespace weir
