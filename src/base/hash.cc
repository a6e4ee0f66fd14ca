// XXH3 comes from its own header, compiled in here. SipHash-1-3 is short enough to write out.
#include "base/hash.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

#include "base/mix.h"

namespace weir {
namespace {

static_assert(std::endian::native == std::endian::little, "SipHash below reads words as they lie");

// A hasher without a secret could be attacked, so there is no going on if none can be had.
void FillRandomly(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) std::abort();
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

// splitmix64: spreads a seed over as many words as are asked for.
std::uint64_t NextWord(std::uint64_t& state) noexcept {
  const std::uint64_t word = Mix(state);
  state += 0x9e3779b97f4a7c15;
  return word;
}

std::uint64_t WordAt(const void* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

struct SipState {
  std::uint64_t v0;
  std::uint64_t v1;
  std::uint64_t v2;
  std::uint64_t v3;

  void Round() noexcept {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void Absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    Round();
    v0 ^= word;
  }
};

std::uint64_t SipHash13(const unsigned char* secret, std::string_view key) noexcept {
  const std::uint64_t k0 = WordAt(secret);
  const std::uint64_t k1 = WordAt(secret + sizeof(k0));
  SipState state{.v0 = k0 ^ 0x736f6d6570736575,
                 .v1 = k1 ^ 0x646f72616e646f6d,
                 .v2 = k0 ^ 0x6c7967656e657261,
                 .v3 = k1 ^ 0x7465646279746573};
  const std::uint64_t length_byte = std::uint64_t{key.size()} << 56;
  while (key.size() >= sizeof(std::uint64_t)) {
    state.Absorb(WordAt(key.data()));
    key.remove_prefix(sizeof(std::uint64_t));
  }
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < key.size(); ++i) {
    last |= std::uint64_t{static_cast<unsigned char>(key[i])} << (8 * i);
  }
  state.Absorb(last | length_byte);
  state.v2 ^= 0xff;
  for (int i = 0; i < 3; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace

KeyHasher::KeyHasher(HashKind kind) : kind_(kind) { FillRandomly(secret_); }

KeyHasher::KeyHasher(HashKind kind, std::uint64_t seed) : kind_(kind) {
  for (std::size_t at = 0; at < kSecretBytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = NextWord(seed);
    std::memcpy(secret_ + at, &word, sizeof(word));
  }
}

KeyHasher::KeyHasher(HashKind kind, Secret secret) : kind_(kind) {
  std::ranges::copy(secret, secret_);
}

std::uint64_t KeyHasher::operator()(std::string_view key) const noexcept {
  if (kind_ == HashKind::kSipHash) [[unlikely]]
    return SipHash13(secret_, key);
  return XXH3_64bits_withSecret(key.data(), key.size(), secret_, kSecretBytes);
}

}  // namespace weir
