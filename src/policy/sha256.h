// SHA-256, for names of things that are too long or not to be known. OpenSSL does the work and is
// kept out of sight.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace weir {

// The first 128 bits in lower-case hexadecimal digits: too many for two texts to share them.
using Hex128Digits = std::array<char, 32>;

// Over text that comes in pieces. Copying one copies what it has read so far, which is how a
// beginning that many texts share is read only once.
class Sha256 {
 public:
  using Digest = std::array<unsigned char, 32>;

  Sha256() noexcept;

  void Update(std::string_view piece) noexcept;
  // Of everything so far. The object must not be used after that.
  Digest Finish() noexcept;

 private:
  alignas(8) std::array<std::byte, 112> state_;
};

void WriteHex128(const Sha256::Digest& digest, Hex128Digits& out) noexcept;

void Sha256Hex128(std::string_view text, Hex128Digits& out) noexcept;

}  // namespace weir
