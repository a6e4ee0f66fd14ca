// Hashes of texts. Without a secret: what a text of a request finds by them must be compared with
// the text itself afterwards; texts of the policy may stand for themselves.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir {

// Two words that hold all of a text of up to 16 bytes; of a longer one its first and last 8.
struct TextEnds {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  explicit TextEnds(std::string_view text) noexcept {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    if (text.size() >= 8) {
      first = WordAt<std::uint64_t>(begin);
      last = WordAt<std::uint64_t>(end - 8);
    } else if (text.size() >= 4) {
      first = WordAt<std::uint32_t>(begin);
      last = WordAt<std::uint32_t>(end - 4);
    } else if (!text.empty()) {
      first = WordAt<std::uint8_t>(begin);
      last = WordAt<std::uint8_t>(begin + text.size() / 2) << 8 | WordAt<std::uint8_t>(end - 1);
    }
  }

  std::uint64_t Hash(std::size_t size) const noexcept {
    constexpr std::uint64_t kOne = 0x9e3779b97f4a7c15;
    constexpr std::uint64_t kTwo = 0xbf58476d1ce4e5b9;
    constexpr std::uint64_t kThree = 0x94d049bb133111eb;
    return Folded(Folded(first ^ kOne, last ^ kTwo), size ^ kThree);
  }

 private:
  template <typename Word>
  static std::uint64_t WordAt(const char* at) noexcept {
    Word word = 0;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  static std::uint64_t Folded(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
};

std::uint64_t HashOfLong(std::string_view text) noexcept;

// In place for most texts, which are short: a request looks up a dozen of them.
inline std::uint64_t HashOf(std::string_view text) noexcept {
  return text.size() <= 16 ? TextEnds(text).Hash(text.size()) : HashOfLong(text);
}

// The same for names that differ in case only, and for some others. Takes the same time however
// long the name is.
inline std::uint64_t HashOfName(std::string_view name) noexcept {
  constexpr std::uint64_t kLowerCase = 0x2020202020202020;  // And other bytes than letters alike.
  TextEnds ends(name);
  ends.first |= kLowerCase;
  ends.last |= kLowerCase;
  return ends.Hash(name.size());
}

}  // namespace weir
