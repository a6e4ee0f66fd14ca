#include "policy/subject.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace weir {
namespace {

constexpr bool IsPlainByte(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '@' || c == '-';
}

constexpr std::array<bool, 256> kPlainBytes = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0; c < plain.size(); ++c)
    plain[c] = IsPlainByte(static_cast<unsigned char>(c));
  return plain;
}();

// Most values are plain from end to end, so they are looked at in blocks.
using Block = unsigned char __attribute__((vector_size(16)));

using WordBlock = std::uint64_t __attribute__((vector_size(16)));

bool AllPlain(const Block& c) noexcept {
  const Block letter = (c | 0x20) - 'a';
  const Block digit = c - '0';
  const auto plain = reinterpret_cast<WordBlock>((letter < 26) | (digit < 10) | (c == '.') |
                                                 (c == '_') | (c == '@') | (c == '-'));
  return (plain[0] & plain[1]) == ~std::uint64_t{0};
}

// The same for less than a block: its first bytes and its last, which overlap.
template <typename Part>
bool CopyIfPlain(std::string_view text, char* out) noexcept {
  Part first = 0;
  Part last = 0;
  std::memcpy(&first, text.data(), sizeof(Part));
  std::memcpy(&last, text.data() + text.size() - sizeof(Part), sizeof(Part));
  // Bytes that a part does not have are as another.
  constexpr std::uint64_t kRepeat = sizeof(Part) == sizeof(std::uint64_t) ? 1 : 0x1'0000'0001;
  if (!AllPlain(reinterpret_cast<Block>(WordBlock{first * kRepeat, last * kRepeat}))) return false;
  std::memcpy(out, &first, sizeof(Part));
  std::memcpy(out + text.size() - sizeof(Part), &last, sizeof(Part));
  return true;
}

// Writes a text shorter than a block, if it is plain and not very short.
bool CopyShortIfPlain(std::string_view text, char* out) noexcept {
  if (text.size() >= sizeof(std::uint64_t)) return CopyIfPlain<std::uint64_t>(text, out);
  if (text.size() >= sizeof(std::uint32_t)) return CopyIfPlain<std::uint32_t>(text, out);
  return false;
}

}  // namespace

char* SubjectWriter::Encode(std::string_view text, char* out) noexcept {
  constexpr char kDigits[] = "0123456789ABCDEF";
  while (text.size() >= sizeof(Block)) {
    Block block;
    std::memcpy(&block, text.data(), sizeof(block));
    if (!AllPlain(block)) break;
    std::memcpy(out, &block, sizeof(block));
    out += sizeof(block);
    text.remove_prefix(sizeof(block));
  }
  if (text.size() < sizeof(Block) && CopyShortIfPlain(text, out)) return out + text.size();
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlainBytes[byte]) [[likely]] {
      *out++ = c;
      continue;
    }
    *out++ = '%';
    *out++ = kDigits[byte >> 4];
    *out++ = kDigits[byte & 15];
  }
  return out;
}

std::string EncodeForSubject(std::string_view text) {
  std::string encoded(text.size() * SubjectWriter::kMostEncodedBytes, '\0');
  const char* const end = SubjectWriter::Encode(text, encoded.data());
  encoded.resize(static_cast<std::size_t>(end - encoded.data()));
  return encoded;
}

void SubjectWriter::Begin() noexcept {
  used_ = 0;
  any_parts_ = false;
  flushed_.reset();
}

void SubjectWriter::Add(std::string_view name, std::string_view value) noexcept {
  StartPart();
  AppendEncoded(name);
  AppendByte('=');
  AppendEncoded(value);
}

void SubjectWriter::AddHashed(std::string_view name, std::string_view hex) noexcept {
  StartPart();
  AppendEncoded(name);
  AppendByte('~');
  AppendByte('=');
  AppendEncoded(hex);
}

void SubjectWriter::AddLongPart(std::string_view encoded_name, std::string_view value) noexcept {
  StartPart();
  Append(encoded_name);
  AppendByte('=');
  AppendEncoded(value);
}

void SubjectWriter::AddHashedEncodedName(std::string_view encoded_name,
                                         std::string_view hex) noexcept {
  StartPart();
  Append(encoded_name);
  AppendByte('~');
  AppendByte('=');
  AppendEncoded(hex);
}

std::string_view SubjectWriter::FinishOther() noexcept {
  if (!any_parts_) return kGlobalSubject;
  Flush();
  Hex128Digits hex;
  WriteHex128(flushed_->Finish(), hex);
  buffer_[0] = '~';
  std::ranges::copy(hex, buffer_ + 1);
  return {buffer_, 1 + hex.size()};
}

void SubjectWriter::StartPart() noexcept {
  if (std::exchange(any_parts_, true)) AppendByte('&');
}

void SubjectWriter::AppendByte(char c) noexcept {
  if (used_ == kBufferBytes) Flush();
  buffer_[used_++] = c;
}

void SubjectWriter::Append(std::string_view plain) noexcept {
  while (true) {
    const std::size_t fits = std::min(plain.size(), kBufferBytes - used_);
    used_ += plain.copy(buffer_ + used_, fits);
    if (fits == plain.size()) return;
    plain.remove_prefix(fits);
    Flush();
  }
}

void SubjectWriter::AppendEncoded(std::string_view text) noexcept {
  while (true) {
    const std::size_t fits = std::min(text.size(), (kBufferBytes - used_) / kMostEncodedBytes);
    char* out = buffer_ + used_;
    used_ += static_cast<std::size_t>(Encode(text.substr(0, fits), out) - out);
    if (fits == text.size()) return;
    text.remove_prefix(fits);
    // What is left of the buffer may do for one byte only, and then for none.
    if (kBufferBytes - used_ < kBufferBytes / 2) Flush();
  }
}

void SubjectWriter::Flush() noexcept {
  if (!flushed_) flushed_.emplace();
  flushed_->Update({buffer_, used_});
  used_ = 0;
}

}  // namespace weir
