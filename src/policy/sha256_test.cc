#include "policy/sha256.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

std::string HexOf(std::string_view text) {
  Hex128Digits hex;
  Sha256Hex128(text, hex);
  return {hex.data(), hex.size()};
}

// The first halves of the vectors of FIPS 180-4.
TEST(Sha256, IsWhatTheStandardSays) {
  EXPECT_EQ(HexOf(""), "e3b0c44298fc1c149afbf4c8996fb924");
  EXPECT_EQ(HexOf("abc"), "ba7816bf8f01cfea414140de5dae2223");
  EXPECT_EQ(HexOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039");
  EXPECT_EQ(HexOf(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67");
}

TEST(Sha256, OfACopyGoesOnFromWhereItWasCopied) {
  Sha256 hash;
  hash.Update("ab");
  Sha256 copy = hash;
  copy.Update("c");
  hash.Update("d");
  Hex128Digits hex;
  WriteHex128(copy.Finish(), hex);
  EXPECT_EQ(std::string(hex.data(), hex.size()), HexOf("abc"));
  WriteHex128(hash.Finish(), hex);
  EXPECT_EQ(std::string(hex.data(), hex.size()), HexOf("abd"));
}

RC_GTEST_PROP(Sha256, DoesNotDependOnHowTheTextIsCut, (const std::vector<std::string>& pieces)) {
  Sha256 hash;
  std::string text;
  for (const std::string& piece : pieces) {
    hash.Update(piece);
    text += piece;
  }
  Hex128Digits hex;
  WriteHex128(hash.Finish(), hex);
  RC_ASSERT(std::string(hex.data(), hex.size()) == HexOf(text));
}

}  // namespace
}  // namespace weir
