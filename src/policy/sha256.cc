// OpenSSL's low-level functions are called deprecated, but they are the ones that need no context
// from the heap and cannot fail; its newer ones take half as long again for a short text.
#include "policy/sha256.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <new>
#include <type_traits>

#include <openssl/sha.h>
#undef OPENSSL_SUPPRESS_DEPRECATED

namespace weir {
namespace {

SHA256_CTX* ContextIn(std::byte* state) noexcept {
  return std::launder(reinterpret_cast<SHA256_CTX*>(state));
}

}  // namespace

Sha256::Sha256() noexcept {
  static_assert(sizeof(state_) == sizeof(SHA256_CTX) && alignof(SHA256_CTX) <= 8);
  static_assert(std::is_trivially_copyable_v<SHA256_CTX>);
  SHA256_Init(::new (static_cast<void*>(state_.data())) SHA256_CTX);
}

void Sha256::Update(std::string_view piece) noexcept {
  SHA256_Update(ContextIn(state_.data()), piece.data(), piece.size());
}

Sha256::Digest Sha256::Finish() noexcept {
  Digest digest;
  SHA256_Final(digest.data(), ContextIn(state_.data()));
  return digest;
}

void WriteHex128(const Sha256::Digest& digest, Hex128Digits& out) noexcept {
  constexpr char kDigits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < out.size() / 2; ++i) {
    out[2 * i] = kDigits[digest[i] >> 4];
    out[2 * i + 1] = kDigits[digest[i] & 15];
  }
}

void Sha256Hex128(std::string_view text, Hex128Digits& out) noexcept {
  Sha256 hash;
  hash.Update(text);
  WriteHex128(hash.Finish(), out);
}

}  // namespace weir
