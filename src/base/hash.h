// Keys become 64-bit fingerprints under a secret that no client knows, so that nobody can pick
// keys that collide. Inside the store the fingerprint is the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir {

enum class HashKind : std::uint8_t {
  kXxh3,     // Fast; its secret is not meant to withstand a determined cryptanalyst.
  kSipHash,  // SipHash-1-3, for keys chosen by an adversary who can measure; some 8 ns slower.
};

// Immutable once made; safe to share.
class KeyHasher {
 public:
  // Draws a secret from the system's random source.
  explicit KeyHasher(HashKind kind);
  // For tests and for comparing runs: the same seed gives the same fingerprints.
  KeyHasher(HashKind kind, std::uint64_t seed);

  std::uint64_t operator()(std::string_view key) const noexcept;

 private:
  static constexpr std::size_t kSecretBytes = 192;

  HashKind kind_;
  alignas(64) unsigned char secret_[kSecretBytes];
};

}  // namespace weir
