#include "lab/shown_text.h"

#include <gtest/gtest.h>

namespace weir::lab {
namespace {

TEST(ShownText, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(ShownText("GET /items?id=7 \"x\" <&> äöü 日本 👍"),
            "GET /items?id=7 \"x\" <&> äöü 日本 👍");
}

TEST(ShownText, WritesOutWhatATerminalWouldObey) {
  EXPECT_EQ(ShownText("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(ShownText("a\nb\tc\r\x7f"), "a\\x0ab\\x09c\\x0d\\x7f");
  EXPECT_EQ(ShownText("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // The same as ESC [ to some.
  EXPECT_EQ(ShownText(std::string_view("\0", 1)), "\\x00");
}

TEST(ShownText, WritesOutWhatTurnsTheDirectionOrCannotBeSeen) {
  EXPECT_EQ(ShownText("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb");
  EXPECT_EQ(ShownText("\xe2\x81\xa6\xe2\x81\xa9"), "\\u2066\\u2069");
  EXPECT_EQ(ShownText("\xef\xbb\xbf"), "\\ufeff");
  EXPECT_EQ(ShownText("\xe2\x80\xa8"), "\\u2028");  // An end of a line in JavaScript.
  EXPECT_EQ(ShownText("\xf3\xa0\x81\x81"), "\\U000e0041");
}

TEST(ShownText, KeepsLinesWhereThereMayBeMany) {
  EXPECT_EQ(ShownText("a\n\tb\r\x1b", Lines::kMany), "a\n\tb\\x0d\\x1b");
}

TEST(ShownText, ReplacesWhatIsNotUtf8) {
  constexpr std::string_view kReplaced = "\xef\xbf\xbd";
  for (const char* bytes : {"\xff", "\xc0\xaf", "\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xe2\x82", "\xf0\x9f\x91", "\xc3("}) {
    const std::string shown = ShownText(bytes);
    EXPECT_TRUE(shown.starts_with(kReplaced)) << shown;
    EXPECT_EQ(ShownText(shown), shown);  // And what comes out is.
  }
  EXPECT_EQ(ShownText("\xc3("), std::string(kReplaced) + "(");
}

TEST(DisplayWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0U);
  EXPECT_EQ(DisplayWidth("abc"), 3U);
  EXPECT_EQ(DisplayWidth("äöü"), 3U);
  EXPECT_EQ(DisplayWidth("日本"), 4U);
  EXPECT_EQ(DisplayWidth("👍"), 2U);
  EXPECT_EQ(DisplayWidth("e\xcc\x81"), 1U);  // An accent upon a letter.
  EXPECT_EQ(DisplayWidth("▁▂▃█"), 4U);
}

TEST(CutTo, NeverTakesMoreThanItMay) {
  EXPECT_EQ(CutTo("abcdef", 6), "abcdef");
  EXPECT_EQ(CutTo("abcdef", 5), "abcd…");
  EXPECT_EQ(CutTo("abcdef", 1), "…");
  EXPECT_EQ(CutTo("abcdef", 0), "");
  EXPECT_EQ(CutTo("日本語", 5), "日本…");
  EXPECT_EQ(CutTo("日本語", 4), "日…");  // Half a character is none.
  EXPECT_EQ(CutTo("ääää", 3), "ää…");
}

TEST(Wrapped, BreaksAtSpacesAndKeepsLines) {
  EXPECT_EQ(Wrapped("one two three four five six", 20, ""), "one two three four\nfive six\n");
  EXPECT_EQ(Wrapped("a\n\nb", 20, "  "), "  a\n\n  b\n");
  EXPECT_EQ(Wrapped("", 20, ""), "");
  const std::string word(50, 'x');
  EXPECT_EQ(Wrapped("a " + word, 20, ""), "a\n" + word + "\n");  // Whole, so that it can be copied.
}

}  // namespace
}  // namespace weir::lab
