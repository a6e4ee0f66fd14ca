// What is written in RESP: replies, and commands as clients send them. Types that only RESP3 has
// become what Redis sends in their place to those who speak RESP2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "net/byte_buffer.h"
#include "net/decimal.h"

namespace weir::resp {

enum class Version : std::uint8_t { kResp2 = 2, kResp3 = 3 };

// A text whose length is known when this is compiled, without its final zero.
template <std::size_t size>
inline char* PutText(char* at, const char (&text)[size]) noexcept {
  std::memcpy(at, text, size - 1);
  return at + size - 1;
}

inline char* PutText(char* at, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// Appends to a buffer. A group's header is followed by as many items as it says.
class ReplyWriter {
 public:
  ReplyWriter(ByteBuffer& out, Version version) noexcept : out_(out), version_(version) {}

  Version version() const noexcept { return version_; }

  // Line ends and other control characters in it become blanks: nothing may end the line early.
  void Simple(std::string_view text) { Line('+', text); }
  // "ERR what is wrong".
  void Error(std::string_view text) { Line('-', text); }
  void Integer(std::int64_t number) { Header(':', number); }
  void Bulk(std::string_view text);
  void Null();
  void Boolean(bool value);
  void Double(double number);
  void Array(std::size_t items) { Header('*', static_cast<std::int64_t>(items)); }
  void Map(std::size_t pairs);
  void Set(std::size_t items);
  void Push(std::size_t items);

 private:
  bool is_resp3() const noexcept { return version_ == Version::kResp3; }
  void Header(char type, std::int64_t number);
  void Line(char type, std::string_view text);

  ByteBuffer& out_;
  Version version_;
};

// A command as a client sends it.
void WriteCommand(ByteBuffer& out, std::span<const std::string_view> words);

}  // namespace weir::resp
