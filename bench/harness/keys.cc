#include "harness/keys.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/random.h"

namespace weir::bench {
namespace {

// Draws ranks 1 to n with a probability proportional to rank^-exponent, exactly and without a
// table: rejection-inversion (Hörmann and Derflinger, 1996).
class ZipfRanks {
 public:
  ZipfRanks(std::uint64_t n, double exponent) noexcept
      : exponent_(exponent),
        last_(static_cast<double>(n)),
        area_first_(Area(1.5) - 1),
        area_last_(Area(last_ + 0.5)),
        squeeze_(2 - InverseArea(Area(2.5) - Height(2))) {}

  std::uint64_t Draw(Random& random) const noexcept {
    for (;;) {
      const double area = area_last_ + random.Fraction() * (area_first_ - area_last_);
      const double x = InverseArea(area);
      const double rank = std::clamp(std::round(x), 1.0, last_);
      if (rank - x <= squeeze_ || area >= Area(rank + 0.5) - Height(rank)) {
        return static_cast<std::uint64_t>(rank);
      }
    }
  }

 private:
  // x^-exponent, its integral, and the inverse of that. The exponent is not 1.
  double Height(double x) const noexcept { return std::exp(-exponent_ * std::log(x)); }
  double Area(double x) const noexcept {
    return std::expm1((1 - exponent_) * std::log(x)) / (1 - exponent_);
  }
  double InverseArea(double area) const noexcept {
    return std::exp(std::log1p(area * (1 - exponent_)) / (1 - exponent_));
  }

  double exponent_;
  double last_;
  double area_first_;
  double area_last_;
  double squeeze_;
};

}  // namespace

void WriteKey(std::uint64_t id, char* text) noexcept {
  static constexpr char kHex[] = "0123456789abcdef";
  std::memcpy(text, "user:", 5);
  const std::uint64_t scrambled = Scramble(id + 1);
  for (std::size_t i = 0; i < 16; ++i) text[5 + i] = kHex[scrambled >> (60 - 4 * i) & 15];
}

KeySequence KeySequence::EachOnce(std::uint64_t first, std::size_t length) {
  KeySequence sequence(length);
  for (std::size_t i = 0; i < length; ++i) {
    WriteKey(first + i, sequence.texts_.data() + i * kKeyStride);
  }
  return sequence;
}

KeySequence KeySequence::Drawn(Spread spread, std::uint64_t keys, std::size_t length) {
  KeySequence sequence(length);
  Random random(keys);
  const ZipfRanks zipf(keys, 0.99);
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint64_t id =
        spread == Spread::kZipf && keys > 1 ? zipf.Draw(random) - 1 : random.Below(keys);
    WriteKey(id, sequence.texts_.data() + i * kKeyStride);
  }
  return sequence;
}

}  // namespace weir::bench
