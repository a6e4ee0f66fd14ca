#include "base/checksum.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir {
namespace {

std::uint64_t Of(std::string_view text, std::size_t piece) {
  Checksum checksum;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    checksum.Add(std::as_bytes(std::span(text.substr(0, piece))));
  }
  return checksum.Value();
}

TEST(Checksum, IsThatOfXxh3) {
  // As the reference implementation has it: it is written to files that must stay readable.
  EXPECT_EQ(Checksum().Value(), 0x2d06800538d394c2);
  EXPECT_EQ(Of("a", 1), 0xe6c632b61e964e1f);
}

TEST(Checksum, DoesNotDependOnThePieces) {
  const std::string text(3'000, 'x');
  for (const std::size_t piece : {1U, 7U, 64U, 1'024U}) EXPECT_EQ(Of(text, piece), Of(text, 3'000));
}

TEST(Checksum, ChangesWithEveryBit) {
  std::string text(600, 'x');
  const std::uint64_t before = Of(text, 600);
  for (char& c : text) {
    for (int bit = 0; bit < 8; ++bit) {
      c = static_cast<char>(c ^ (1 << bit));
      EXPECT_NE(Of(text, 600), before);
      c = static_cast<char>(c ^ (1 << bit));
    }
  }
}

}  // namespace
}  // namespace weir
