#include "store/redis/slots.h"

#include <array>
#include <memory>

namespace weir::redis {
namespace {

// CRC-16/XMODEM, a byte at a time.
constexpr std::array<std::uint16_t, 256> MakeTable() noexcept {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U);
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kTable = MakeTable();

constexpr std::size_t kTagBytes = 4;

// Four letters and digits each, the first that are of the slot. Every process comes to the same.
class Tags {
 public:
  Tags() noexcept {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
    std::size_t found = 0;
    for (std::size_t number = 0; found < kSlots; ++number) {
      std::array<char, kTagBytes> tag;
      std::size_t rest = number;
      for (char& letter : tag) {
        letter = kLetters[rest % kLetters.size()];
        rest /= kLetters.size();
      }
      auto& place = tags_[SlotOfTag({tag.data(), tag.size()})];
      if (place[0] != 0) continue;
      place = tag;
      ++found;
    }
  }

  std::string_view operator[](std::uint16_t slot) const noexcept {
    const auto& tag = tags_[slot % kSlots];
    return {tag.data(), tag.size()};
  }

 private:
  std::array<std::array<char, kTagBytes>, kSlots> tags_{};
};

}  // namespace

std::uint16_t SlotOfTag(std::string_view tag) noexcept {
  unsigned crc = 0;
  for (const char c : tag) {
    crc = (crc << 8 ^ kTable[(crc >> 8 ^ static_cast<unsigned char>(c)) & 0xffU]) & 0xffffU;
  }
  return static_cast<std::uint16_t>(crc % kSlots);
}

std::uint16_t SlotOfKey(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return SlotOfTag(key);
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return SlotOfTag(key);
  return SlotOfTag(key.substr(open + 1, close - open - 1));
}

std::string_view TagOfSlot(std::uint16_t slot) noexcept {
  static const auto kTags = std::make_unique<const Tags>();
  return (*kTags)[slot];
}

}  // namespace weir::redis
