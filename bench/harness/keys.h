// The texts of keys, and the orders in which requests name them.
//
//   key:  "user:" and 16 hex digits, no two alike
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weir::bench {

inline constexpr std::size_t kKeyBytes = 21;
// From one key of a sequence to the next.
inline constexpr std::size_t kKeyStride = 24;

// Writes the text of a key: kKeyBytes bytes.
void WriteKey(std::uint64_t id, char* text) noexcept;

// How often each key is asked for.
enum class Spread : std::uint8_t {
  kUniform,
  kZipf,  // With exponent 0.99.
};

// The keys of many requests, side by side in the order in which they come. A server has the bytes
// of a request at hand when it checks it, so fetching them from anywhere in memory would charge
// the limiter with a cache miss that is not its own.
class KeySequence {
 public:
  // Keys first, first + 1, ...: each once.
  static KeySequence EachOnce(std::uint64_t first, std::size_t length);
  // Keys 0 to `keys` - 1, drawn at random; the same in every run.
  static KeySequence Drawn(Spread spread, std::uint64_t keys, std::size_t length);

  std::string_view operator[](std::size_t at) const noexcept {
    return {texts_.data() + at * kKeyStride, kKeyBytes};
  }
  std::size_t size() const noexcept { return texts_.size() / kKeyStride; }
  const char* data() const noexcept { return texts_.data(); }

 private:
  explicit KeySequence(std::size_t length) : texts_(length * kKeyStride) {}

  std::vector<char> texts_;
};

// Where a thread is in a sequence; after the last key comes the first.
class Cursor {
 public:
  Cursor(const KeySequence& sequence, std::size_t start) noexcept
      : sequence_(sequence), at_(start) {}

  std::string_view Next() noexcept {
    const std::string_view key = sequence_[at_];
    if (++at_ == sequence_.size()) at_ = 0;
    return key;
  }

 private:
  const KeySequence& sequence_;
  std::size_t at_;
};

}  // namespace weir::bench
