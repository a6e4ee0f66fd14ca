#include "base/hash.h"

#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

struct Vector {
  std::string key;
  std::uint64_t hash;
};

// What a seed of 1 must give: the secret is the output of splitmix64 from there.
constexpr std::uint64_t kSeed = 1;

// Computed by a program in Python written from the SipHash paper, which also reproduces the paper's
// SipHash-2-4 vector and, with a key of zeros, the hash(bytes) of Python 3.11.
TEST(KeyHasher, ComputesSipHash13) {
  std::string counting;
  for (char c = 0; c < 63; ++c) counting += c;
  const Vector vectors[] = {
      {"", 0x3d884f5d218dae00},
      {"a", 0x48abd70a58ba4e72},
      {"1234567", 0x165cf09b55e65a32},
      {"12345678", 0x3f7642fb3d6f3d2d},
      {"user:1234567890", 0xbc60deecdf83a965},
      {"user:12345678901", 0x1687620427851992},
      {"192.168.100.200/sess", 0x53b3c581a16f8b06},
      {counting, 0x07e4075059fa4124},
      {std::string(300, 'x'), 0x23e8d2740e5f5d25},
  };
  const KeyHasher hasher(HashKind::kSipHash, kSeed);
  for (const Vector& vector : vectors) EXPECT_EQ(hasher(vector.key), vector.hash) << vector.key;
}

TEST(KeyHasher, KnowsTheKeysOfAnotherWithTheSameSecret) {
  for (const HashKind kind : {HashKind::kXxh3, HashKind::kSipHash}) {
    const KeyHasher one(kind);
    const KeyHasher same(one.kind(), one.secret());
    const KeyHasher other(kind);
    EXPECT_EQ(same("user:42"), one("user:42"));
    EXPECT_NE(other("user:42"), one("user:42"));
  }
}

// Computed by a program in C linked with libxxhash.
TEST(KeyHasher, ComputesXxh3UnderItsSecret) {
  const Vector vectors[] = {
      {"", 0x32804c0f5e57ea47},
      {"a", 0x8012d8789f200ad2},
      {"user:1234567890", 0x3c0c6c07503046dd},
      {"user:12345678901", 0xcb434230f82e44af},
      {"192.168.100.200/sess", 0xb6060ced6c4e8472},
  };
  const KeyHasher hasher(HashKind::kXxh3, kSeed);
  for (const Vector& vector : vectors) EXPECT_EQ(hasher(vector.key), vector.hash) << vector.key;
}

class EveryKeyHasher : public testing::TestWithParam<HashKind> {};

TEST_P(EveryKeyHasher, GivesTheSameHashForTheSameSeedAndKey) {
  EXPECT_EQ(KeyHasher(GetParam(), 7)("ann"), KeyHasher(GetParam(), 7)("ann"));
}

TEST_P(EveryKeyHasher, GivesAnotherHashForAnotherSeed) {
  EXPECT_NE(KeyHasher(GetParam(), 7)("ann"), KeyHasher(GetParam(), 8)("ann"));
}

TEST_P(EveryKeyHasher, DrawsANewSecretEachTime) {
  EXPECT_NE(KeyHasher(GetParam())("ann"), KeyHasher(GetParam())("ann"));
}

TEST_P(EveryKeyHasher, SetsKeysApartAndNeverGivesZero) {
  const KeyHasher hasher(GetParam());
  std::unordered_set<std::uint64_t> seen;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t hash = hasher("user:" + std::to_string(i));
    EXPECT_NE(hash, 0U);
    EXPECT_TRUE(seen.insert(hash).second);
  }
}

TEST_P(EveryKeyHasher, HashesEveryLengthWithoutReadingPastTheEnd) {
  const KeyHasher hasher(GetParam(), kSeed);
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t length = 0; length < 600; ++length) {
    // An exact allocation, so that AddressSanitizer sees a byte too far.
    const std::vector<char> key(length, 'k');
    EXPECT_TRUE(seen.insert(hasher(std::string_view(key.data(), key.size()))).second) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKeyHasher,
                         testing::Values(HashKind::kXxh3, HashKind::kSipHash));

}  // namespace
}  // namespace weir
