// Ours and two other parsers must agree where requests end: where they do not, a request can be
// smuggled past a proxy.
#include "net/http/second_parser.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr HttpRequestReader::Bounds kComparedBounds = {.header = 16 << 10, .body = 1 << 20};

std::string With(const std::string& headers) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\nhello, world";
}

TEST(SecondParsers, AgreeWithOursOnOrdinaryRequests) {
  const std::vector<std::string> texts = {
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /a?b=c%20d HTTP/1.0\r\n\r\n",
      "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n",
      With("Content-Length: 5\r\n"),
      With("Content-Length: 0\r\n"),
      With("Content-Length: 005\r\n"),
      With("CONTENT-LENGTH:\t5 \r\nAccept: */*\r\n"),
      With(""),
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n000A\r\n0123456789\r\n"
      "00\r\nX: y\r\n\r\n",
  };
  for (const std::string& text : texts) {
    EXPECT_EQ(FindDisagreement(text, kComparedBounds), "") << text;
    EXPECT_EQ(ReadWithOurs(text, kComparedBounds).outcome, HttpRequestReader::Outcome::kComplete)
        << text;
    EXPECT_TRUE(NodeParser().Read(text).request) << text;
  }
}

// Every file that the fuzzer of the reader starts from.
TEST(SecondParsers, AgreeWithOursOnTheCorpus) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_HTTP_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(FindDisagreement(text.substr(std::min<std::size_t>(text.size(), 1)), kComparedBounds),
              "")
        << entry.path();
    ++files;
  }
  EXPECT_GT(files, 20U);
}

TEST(SecondParsers, WouldBeCaughtFramingARequestDifferently) {
  // Beast takes what ours refuses, and only a fault on the list excuses that.
  const std::string twice = "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
  EXPECT_TRUE(ReadWithBeast(twice).request);
  EXPECT_EQ(FindDisagreement(twice, kComparedBounds), "");
  EXPECT_FALSE(IsDeliberate({.status = 400, .message = "something else"}));
  const FramedRequest one{.method = "GET", .size = 5};
  FramedRequest other = one;
  other.size = 6;
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace weir
