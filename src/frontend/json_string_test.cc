#include "frontend/json_string.h"

#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

TEST(JsonString, EscapesWhatMustBe) {
  EXPECT_EQ(Quoted("plain"), "\"plain\"");
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
  EXPECT_EQ(Quoted(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
}

TEST(JsonString, KeepsCharactersAndReplacesWhatIsNone) {
  const std::string replacement = "\xef\xbf\xbd";
  EXPECT_EQ(Quoted("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  EXPECT_EQ(Quoted("\xff"), "\"" + replacement + "\"");
  EXPECT_EQ(Quoted("\xc3"), "\"" + replacement + "\"");
  EXPECT_EQ(Quoted("\xc3(x"), "\"" + replacement + "(x\"");
  EXPECT_EQ(Quoted("\xc0\xaf"), "\"" + replacement + replacement + "\"");  // Overlong.
  EXPECT_EQ(Quoted("\xe0\x80\xaf"), "\"" + replacement + replacement + replacement + "\"");
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"" + replacement + replacement + replacement + "\"");
  EXPECT_EQ(Quoted("\xf4\x90\x80\x80").size(), 2 + 4 * replacement.size());
}

TEST(JsonString, AppendsToWhatIsThere) {
  std::string out = "[";
  AppendJsonString(out, std::string(100, '\x01'));
  EXPECT_EQ(out.size(), 1 + JsonStringRoom(100));
}

}  // namespace
}  // namespace weir
