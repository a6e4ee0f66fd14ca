// The wire format of protobuf: fields with numbers, one behind the other. Messages are read and
// written in place, field by field, without an object for each: a request is as many views as it
// has texts.
//
//   for (ProtobufReader reader(message); reader.Next();) {
//     if (reader.Is(1, WireType::kBytes)) name = reader.bytes();
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/byte_buffer.h"

namespace weir {

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,  // Texts, messages, packed lists.
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// As protobuf has it, unknown fields are passed over, and so is a known one of another type.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) noexcept
      : p_(message.data()), end_(p_ + message.size()) {}

  // Goes to the next field. False if there is none, or the message is broken.
  bool Next() noexcept;
  bool is_broken() const noexcept { return broken_; }

  std::uint32_t field() const noexcept { return field_; }
  WireType type() const noexcept { return type_; }
  bool Is(std::uint32_t field, WireType type) const noexcept {
    return field_ == field && type_ == type;
  }
  // Of a kVarint, kFixed64 or kFixed32.
  std::uint64_t number() const noexcept { return number_; }
  // Of a kBytes.
  std::string_view bytes() const noexcept { return bytes_; }

 private:
  // A group in a group in a group, as far as protobuf itself goes.
  static constexpr int kMostGroups = 100;

  bool ReadVarint(std::uint64_t& value) noexcept;
  bool ReadTag() noexcept;
  bool ReadValue() noexcept;
  bool ReadFixed(std::size_t size) noexcept;
  bool SkipGroup() noexcept;
  bool Broken() noexcept {
    broken_ = true;
    p_ = end_;
    return false;
  }

  const char* p_;
  const char* end_;
  std::uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  std::uint64_t number_ = 0;
  std::string_view bytes_{};
  bool broken_ = false;
};

// What is a `string` in a .proto must be UTF-8.
bool IsUtf8(std::string_view text) noexcept;

// Appends to a buffer. As proto3 has it, what is zero or empty is left out, unless it is wanted.
class ProtobufWriter {
 public:
  explicit ProtobufWriter(ByteBuffer& out) noexcept : out_(out) {}

  void Number(std::uint32_t field, std::uint64_t value) {
    if (value != 0) WantedNumber(field, value);
  }
  void WantedNumber(std::uint32_t field, std::uint64_t value);
  void Bytes(std::uint32_t field, std::string_view bytes) {
    if (!bytes.empty()) WantedBytes(field, bytes);
  }
  void WantedBytes(std::uint32_t field, std::string_view bytes);

  // A message within the message: what is written until it ends.
  enum class Inner : std::size_t {};
  Inner Begin(std::uint32_t field);
  void End(Inner inner);

 private:
  static constexpr std::size_t kMostVarintBytes = 10;

  static char* PutVarint(char* p, std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) *p++ = static_cast<char>(value | 0x80);
    *p++ = static_cast<char>(value);
    return p;
  }
  static char* PutTag(char* p, std::uint32_t field, WireType type) noexcept {
    return PutVarint(p, (field << 3) | static_cast<std::uint32_t>(type));
  }

  ByteBuffer& out_;
};

}  // namespace weir
