// Bytes read whole and read in pieces must come to the same. What every fuzzer of a reader that
// takes bytes as they come does with its input; the first byte of that says where it is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace weir::fuzz {

[[noreturn]] inline void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// A Reading has Take(bytes), which is false if no more can be read, and outcome(), which can be
// compared. Returns the one that took everything in one piece.
template <typename Reading>
Reading ReadWholeAndInPieces(std::uint8_t cut, std::string_view text) {
  Reading whole;
  whole.Take(text);
  Reading pieces;
  std::uint32_t random = cut;
  for (std::size_t at = 0; at < text.size();) {
    random = random * 1'664'525 + 1'013'904'223;
    const std::size_t piece = 1 + (random >> 16) % (1 + cut % 32U);
    if (!pieces.Take(text.substr(at, piece))) break;
    at += piece;
  }
  if (whole.outcome() != pieces.outcome()) Fail("read in pieces, it is something else");
  return whole;
}

inline std::string_view BehindFirst(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data) + 1, size - 1};
}

}  // namespace weir::fuzz
