// What RateLimit-Policy says of each rule, as it was written last. It is the same for all requests
// but where limits depend on the tier or on an override, so copying it is mostly right, and takes a
// third of the instructions that writing it does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <weir/time.h>

#include "net/roomy_text.h"

namespace weir {

// Of one thread.
class PolicyTexts {
 public:
  struct Item {
    std::string_view name{};  // Nothing in it has to be escaped.
    std::int64_t quota = 0;
    Duration window{0};  // None if not above 0.
  };
  static constexpr std::size_t kMostNameBytes = 64;
  static constexpr std::size_t kMostBytes =
      2 + kMostNameBytes + 2 * (3 + RoomyText::kNumberRoom);  // "name";q=100;w=60

  // Puts the text of an item with a name of at most kMostNameBytes.
  void Put(RoomyText& out, const Item& item) noexcept {
    Kept& kept = kept_[PlaceOf(item)];
    if (kept.quota != item.quota || kept.window != item.window || kept.name() != item.name) {
      Write(kept, item);
    }
    out.Put(std::string_view(kept.text.data(), kept.size));
  }

 private:
  static constexpr std::size_t kPlaces = 64;

  struct Kept {
    std::string_view name() const noexcept { return {text.data() + 1, name_size}; }

    std::int64_t quota = 0;
    Duration window{0};
    std::size_t name_size = 0;  // 0: nothing is kept.
    std::size_t size = 0;
    std::array<char, kMostBytes> text{};
  };

  // By where the name stands, which stays the same as long as the rule does.
  static std::size_t PlaceOf(const Item& item) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(item.name.data());
    return (at / 8 ^ at / 512 ^ static_cast<std::uintptr_t>(item.quota)) % kPlaces;
  }
  static void Write(Kept& kept, const Item& item) noexcept;

  std::array<Kept, kPlaces> kept_{};
};

}  // namespace weir
