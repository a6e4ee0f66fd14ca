// A body that comes in chunks, put together in the place where it stands:
//
//   5 CR LF hello CR LF  0 CR LF  (trailers) CR LF   becomes   hello
//
// Sizes are hexadecimal without anything around them; extensions are refused, because parsers
// disagree about where they end. Trailers must be proper headers, and are then ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http/field_line.h"

namespace weir {

class ChunkedBody {
 public:
  struct Bounds {
    std::size_t body;      // Bytes of all chunks together,
    std::size_t overhead;  // and of what stands around them.
  };
  enum class Outcome : std::uint8_t { kIncomplete, kComplete, kFault };

  // `bytes` begins where the body does, and is the same as before with more behind it. Every byte
  // is looked at once, however few come at a time.
  Outcome Read(std::span<char> bytes, const Bounds& bounds) noexcept;

  // How many bytes there are from the beginning on of the body itself, and of what it was read
  // from.
  std::size_t body_size() const noexcept { return decoded_; }
  std::size_t raw_size() const noexcept { return raw_; }
  const HttpFault& fault() const noexcept { return fault_; }

 private:
  enum class Expects : std::uint8_t { kSize, kData, kDataEnd, kTrailer, kNothing };

  Outcome ReadLine(std::string_view rest, const Bounds& bounds) noexcept;
  Outcome ReadSize(std::string_view rest, const Bounds& bounds) noexcept;
  void MoveData(std::span<char> bytes) noexcept;
  Outcome ReadDataEnd(std::string_view rest) noexcept;
  Outcome ReadTrailer(std::string_view rest) noexcept;
  Outcome Fault(std::string_view message, int status = 400) noexcept {
    fault_ = {.status = status, .message = message};
    return Outcome::kFault;
  }

  Expects expects_ = Expects::kSize;
  std::size_t raw_ = 0;       // Read so far,
  std::size_t decoded_ = 0;   // which gave so many bytes of the body.
  std::size_t chunk_ = 0;     // What is missing of the present chunk.
  std::size_t searched_ = 0;  // So much of a trailer that has no end yet.
  HttpFault fault_{};
};

}  // namespace weir
