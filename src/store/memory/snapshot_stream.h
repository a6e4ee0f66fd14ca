// The bytes of a snapshot: numbers, texts, and in the end a checksum of all before it. Numbers are
// little-endian; a text has its length before it, in 32 bits.
//
// Both ends keep the first error and go on as if nothing was: the writer writes no more, the reader
// reads zeros. So those who use them look at it where they like, at the latest when they finish.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/snapshot.h>

#include "base/checksum.h"

namespace weir {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

class SnapshotWriter {
 public:
  explicit SnapshotWriter(const ByteSink& sink);

  void PutBytes(std::span<const std::byte> bytes);
  void PutText(std::string_view text);
  template <std::integral Number>
  void Put(Number number) {
    if (buffer_.size() - used_ < sizeof(number)) Flush();
    std::memcpy(buffer_.data() + used_, &number, sizeof(number));
    used_ += sizeof(number);
  }

  // With the checksum. The error is the sink's.
  Result<void> Finish();

 private:
  void Flush();

  const ByteSink& sink_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  Checksum checksum_;
  std::optional<Error> error_;
};

class SnapshotReader {
 public:
  explicit SnapshotReader(const ByteSource& source);

  void GetBytes(std::span<std::byte> bytes);
  // One that is longer than `most` is refused.
  std::string GetText(std::size_t most);
  template <std::integral Number>
  Number Get() {
    Number number{};
    if (end_ - at_ < sizeof(number)) [[unlikely]] {
      GetBytes(std::as_writable_bytes(std::span(&number, 1)));
      return number;
    }
    std::memcpy(&number, buffer_.data() + at_, sizeof(number));
    at_ += sizeof(number);
    return number;
  }
  // One between two bounds; any other is refused, and the lower one is returned.
  template <std::integral Number>
  Number GetWithin(Number least, Number most, std::string_view what) {
    const auto number = Get<Number>();
    if (number >= least && number <= most) [[likely]]
      return number;
    Refuse(std::string(what) + " is out of range");
    return least;
  }

  void Refuse(std::string why);
  bool failed() const noexcept { return error_.has_value(); }

  // Nothing may follow but the checksum, which must be right.
  Result<void> Finish();

 private:
  // Reads on; what is in the buffer and was not taken yet stays. False at the end.
  bool Fill();

  const ByteSource& source_;
  std::vector<std::byte> buffer_;
  std::size_t at_ = 0;   // What comes next,
  std::size_t end_ = 0;  // and where the buffer ends.
  Checksum checksum_;    // Of what was taken and has left the buffer.
  std::optional<Error> error_;
};

}  // namespace weir
