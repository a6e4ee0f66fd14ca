// Values that a key must tell apart but the store must not know: API keys, session cookies. What
// is kept of them is an HMAC-SHA-256 under a secret, so that a list of likely values is of no use
// to somebody who gets hold of the store.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <weir/result.h>

#include "policy/sha256.h"

namespace weir {

// Immutable; safe to share.
class KeyedHash {
 public:
  // Keys hashed by several processes are the same if their secrets are.
  explicit KeyedHash(std::string_view secret) noexcept;
  // Draws a secret from the system's random source.
  static KeyedHash Random() noexcept;

  // The first 128 bits of HMAC-SHA-256(secret, value).
  void Hex128(std::string_view value, Hex128Digits& out) const noexcept;
  // Of several values in their order. Each has its length before it, so that moving bytes from one
  // to the next gives another hash.
  void Hex128OfAll(std::span<const std::string_view> values, Hex128Digits& out) const noexcept;

 private:
  void Finish(Sha256& inner, Hex128Digits& out) const noexcept;

  // What SHA-256 is after the first block, which depends only on the secret.
  Sha256 inner_;
  Sha256 outer_;
};

inline constexpr std::size_t kLeastSecretBytes = 16;

// `env:NAME` or `file:PATH`, without the line end that it may have. The error never holds any of
// the secret, even if that was written where its source belongs.
Result<std::string> ReadSecret(const std::string& source,
                               std::size_t least_bytes = kLeastSecretBytes);

}  // namespace weir
