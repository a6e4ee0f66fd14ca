// How much memory a key takes.
#pragma once

#include <cstdint>
#include <string>

namespace weir::bench {

struct BytesPerKeyOptions {
  std::string store = "weir";  // Or "boost_fingerprint", "boost_string".
  std::uint64_t first = 5'000'000;
  std::uint64_t last = 40'000'000;
  std::uint64_t step = 1'000'000;
};

// Fills a store that was given no hint of its size, and prints at every step by how many bytes
// per key the process's resident memory has grown: [[keys, bytes per key], ...]. All keys are
// alive: nothing they spent has come back. For a fresh process.
void PrintBytesPerKey(const BytesPerKeyOptions& options);

}  // namespace weir::bench
