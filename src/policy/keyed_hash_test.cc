#include "policy/keyed_hash.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string HexOf(const KeyedHash& hash, std::string_view value) {
  Hex128Digits hex;
  hash.Hex128(value, hex);
  return {hex.data(), hex.size()};
}

std::string HexOfAll(const KeyedHash& hash, std::vector<std::string_view> values) {
  Hex128Digits hex;
  hash.Hex128OfAll(values, hex);
  return {hex.data(), hex.size()};
}

std::string Bytes(std::size_t count, int byte) {
  return std::string(count, static_cast<char>(byte));
}

TEST(KeyedHash, IsWhatRfc4231Says) {
  EXPECT_EQ(HexOf(KeyedHash(Bytes(20, 0x0b)), "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b");
  EXPECT_EQ(HexOf(KeyedHash("Jefe"), "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c7");
  EXPECT_EQ(HexOf(KeyedHash(Bytes(20, 0xaa)), Bytes(50, 0xdd)), "773ea91e36800e46854db8ebd09181a7");
  std::string counting;
  for (int i = 1; i <= 25; ++i) counting += static_cast<char>(i);
  EXPECT_EQ(HexOf(KeyedHash(counting), Bytes(50, 0xcd)), "82558a389a443c0ea4cc819899f2083a");
  EXPECT_EQ(HexOf(KeyedHash(Bytes(20, 0x0c)), "Test With Truncation"),
            "a3b6167473100ee06e0c796c2955552b");
  EXPECT_EQ(
      HexOf(KeyedHash(Bytes(131, 0xaa)), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f");
  EXPECT_EQ(HexOf(KeyedHash(Bytes(131, 0xaa)),
                  "This is a test using a larger than block-size key and a larger than block-size "
                  "data. The key needs to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944");
}

TEST(KeyedHash, DependsOnTheSecret) {
  EXPECT_NE(HexOf(KeyedHash("a secret of some length"), "value"),
            HexOf(KeyedHash("another of some length"), "value"));
  EXPECT_NE(HexOf(KeyedHash::Random(), "value"), HexOf(KeyedHash::Random(), "value"));
}

TEST(KeyedHash, OfSeveralValuesTellsWhereEachEnds) {
  const KeyedHash hash("0123456789abcdef");
  const std::vector<std::vector<std::string_view>> lists = {
      {},         {""},           {"", ""},       {"ab"},  {"a", "b"},  {"b", "a"},  {"", "ab"},
      {"ab", ""}, {"a", "", "b"}, {"a", "b", ""}, {"abc"}, {"ab", "c"}, {"a", "bc"},
  };
  std::set<std::string> seen;
  for (const auto& list : lists) EXPECT_TRUE(seen.insert(HexOfAll(hash, list)).second);
  EXPECT_EQ(HexOfAll(hash, {"a", "b"}), HexOfAll(hash, {"a", "b"}));
}

// The same on every node and in every version, or a shared store would count a key twice.
TEST(KeyedHash, OfSeveralValuesHasTheirLengthsAsEightBytesLeastFirst) {
  const KeyedHash hash("0123456789abcdef");
  EXPECT_EQ(HexOfAll(hash, {"abc", ""}),
            HexOf(hash, std::string_view("\3\0\0\0\0\0\0\0abc\0\0\0\0\0\0\0\0", 19)));
}

class Secret : public testing::Test {
 protected:
  Secret() : path_(testing::TempDir() + "weir-secret-" + std::to_string(getpid())) {}
  ~Secret() override {
    unlink(path_.c_str());
    unsetenv(kName);
  }

  std::string InFile(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return "file:" + path_;
  }
  static std::string InVariable(const std::string& text) {
    setenv(kName, text.c_str(), 1);
    return std::string("env:") + kName;
  }
  static Error ErrorOf(const std::string& source) {
    const Result<std::string> secret = ReadSecret(source);
    EXPECT_FALSE(secret.has_value());
    return secret.has_value() ? Error{} : secret.error();
  }

  static constexpr const char* kName = "WEIR_KEYED_HASH_TEST";
  std::string path_;
};

TEST_F(Secret, ComesFromAVariableOrAFile) {
  EXPECT_EQ(ReadSecret(InVariable("0123456789abcdef")).value(), "0123456789abcdef");
  EXPECT_EQ(ReadSecret(InFile("0123456789abcdef")).value(), "0123456789abcdef");
}

TEST_F(Secret, LosesOneLineEndAndNothingElse) {
  EXPECT_EQ(ReadSecret(InFile("0123456789abcdef\n")).value(), "0123456789abcdef");
  EXPECT_EQ(ReadSecret(InFile("0123456789abcdef\r\n")).value(), "0123456789abcdef");
  EXPECT_EQ(ReadSecret(InFile(" 0123456789abcdef \n\n")).value(), " 0123456789abcdef \n");
  const std::string binary("\0\xff\n\r0123456789abcdef", 20);
  EXPECT_EQ(ReadSecret(InFile(binary)).value(), binary);
}

TEST_F(Secret, HasAtLeastSixteenBytes) {
  for (const std::string& source : {InFile("tooshortsecret!\n"), InVariable("tooshortsecret!")}) {
    const Error error = ErrorOf(source);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, AllOf(HasSubstr(source), HasSubstr("15 bytes"), HasSubstr("16"),
                                     testing::Not(HasSubstr("tooshort"))));
  }
}

TEST_F(Secret, ThatIsNotThereIsAnErrorWithItsName) {
  EXPECT_EQ(ErrorOf("env:WEIR_NO_SUCH_VARIABLE").code, ErrorCode::kNotFound);
  EXPECT_THAT(ErrorOf("env:WEIR_NO_SUCH_VARIABLE").message, HasSubstr("WEIR_NO_SUCH_VARIABLE"));
  EXPECT_EQ(ErrorOf("file:/no/such/file").code, ErrorCode::kNotFound);
  EXPECT_THAT(ErrorOf("file:/no/such/file").message, HasSubstr("/no/such/file"));
}

TEST_F(Secret, WrittenWhereItsSourceBelongsIsNotRepeated) {
  const Error error = ErrorOf("hunter2hunter2hunter2");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(testing::Not(HasSubstr("hunter2")), HasSubstr("env:NAME")));
}

}  // namespace
}  // namespace weir
