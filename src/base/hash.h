// Keys become 64-bit fingerprints under a secret that no client knows, so that nobody can pick
// keys that collide. Inside the store the fingerprint is the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  // With a secret that another had, to know the keys that it knew.
  static constexpr std::size_t kSecretBytes = 192;
  using Secret = std::span<const unsigned char, kSecretBytes>;
  KeyHasher(HashKind kind, Secret secret);

  std::uint64_t operator()(std::string_view key) const noexcept;

  HashKind kind() const noexcept { return kind_; }
  // Not for the eyes of clients: who knows it can pick keys that collide.
  Secret secret() const noexcept { return Secret(secret_); }

 private:
  HashKind kind_;
  alignas(64) unsigned char secret_[kSecretBytes];
};

}  // namespace weir
