#include "policy/keyed_hash.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "limit/limit_words.h"
#include "policy/file_text.h"

namespace weir {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kMostSecretFileBytes = std::size_t{64} << 10;

std::string_view AsText(const Sha256::Digest& digest) noexcept {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Sha256 AfterBlock(std::array<char, kBlockBytes> key, unsigned char pad) noexcept {
  for (char& c : key) c = static_cast<char>(static_cast<unsigned char>(c) ^ pad);
  Sha256 hash;
  hash.Update({key.data(), key.size()});
  return hash;
}

std::array<char, kBlockBytes> BlockOf(std::string_view secret) noexcept {
  std::array<char, kBlockBytes> key{};
  Sha256::Digest digest;
  if (secret.size() > kBlockBytes) {
    Sha256 hash;
    hash.Update(secret);
    digest = hash.Finish();
    secret = AsText(digest);
  }
  std::ranges::copy(secret, key.begin());
  return key;
}

Error Refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// Files end with a line end that nobody means; what echo puts into a variable may, too.
Result<std::string> Checked(std::string secret, const std::string& source,
                            std::size_t least_bytes) {
  if (secret.ends_with('\n')) secret.pop_back();
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.size() >= least_bytes) return secret;
  return std::unexpected(Refused("the secret in " + source + " has " +
                                 std::to_string(secret.size()) + " bytes; it must have at least " +
                                 std::to_string(least_bytes)));
}

}  // namespace

KeyedHash::KeyedHash(std::string_view secret) noexcept {
  const std::array<char, kBlockBytes> key = BlockOf(secret);
  inner_ = AfterBlock(key, 0x36);
  outer_ = AfterBlock(key, 0x5c);
}

KeyedHash KeyedHash::Random() noexcept {
  std::array<char, 32> secret;
  std::size_t have = 0;
  while (have < secret.size()) {
    const ssize_t got = getrandom(secret.data() + have, secret.size() - have, 0);
    // Without a secret the hashes would hide nothing, so there is no going on.
    if (got < 0 && errno != EINTR) std::abort();
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return KeyedHash(std::string_view(secret.data(), secret.size()));
}

void KeyedHash::Finish(Sha256& inner, Hex128Digits& out) const noexcept {
  Sha256 outer = outer_;
  outer.Update(AsText(inner.Finish()));
  WriteHex128(outer.Finish(), out);
}

void KeyedHash::Hex128(std::string_view value, Hex128Digits& out) const noexcept {
  Sha256 inner = inner_;
  inner.Update(value);
  Finish(inner, out);
}

void KeyedHash::Hex128OfAll(std::span<const std::string_view> values,
                            Hex128Digits& out) const noexcept {
  static_assert(std::endian::native == std::endian::little, "nodes must agree on the lengths");
  Sha256 inner = inner_;
  for (const std::string_view value : values) {
    const std::uint64_t length = value.size();
    std::array<char, sizeof(length)> bytes;
    std::memcpy(bytes.data(), &length, sizeof(length));
    inner.Update({bytes.data(), bytes.size()});
    inner.Update(value);
  }
  Finish(inner, out);
}

Result<std::string> ReadSecret(const std::string& source, std::size_t least_bytes) {
  constexpr std::string_view kVariable = "env:";
  constexpr std::string_view kFile = "file:";
  if (source.starts_with(kVariable)) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
    const char* value = std::getenv(source.c_str() + kVariable.size());
    if (value != nullptr) return Checked(value, source, least_bytes);
    return std::unexpected(
        Error{ErrorCode::kNotFound, "the environment has no variable " +
                                        Quoted(std::string_view(source).substr(kVariable.size())) +
                                        " for the secret"});
  }
  if (source.starts_with(kFile)) {
    Result<std::string> text = ReadWholeFile(source.substr(kFile.size()), kMostSecretFileBytes);
    if (!text) return text;
    return Checked(std::move(*text), source, least_bytes);
  }
  return std::unexpected(
      Refused("a secret is not written here; say where it is: env:NAME or file:PATH"));
}

}  // namespace weir
