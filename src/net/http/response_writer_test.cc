#include "net/http/response_writer.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(HttpResponseWriter, WritesStatusHeadersLengthAndBody) {
  ByteBuffer out;
  HttpResponseWriter response(out, {.status = 429, .room = 32});
  response.Header("Retry-After", "12");
  response.Finish("{}");
  EXPECT_EQ(out.view(),
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 12\r\nContent-Length: 2\r\n\r\n{}");
}

TEST(HttpResponseWriter, SaysWhatBecomesOfTheConnection) {
  ByteBuffer out;
  HttpResponseWriter(out, {.persistence = HttpPersistence::kClose}).Finish("");
  HttpResponseWriter(out, {.persistence = HttpPersistence::kKeepAlive}).Finish("");
  EXPECT_EQ(out.view(),
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
}

TEST(HttpResponseWriter, TellsTheLengthOfABodyThatItLeavesOut) {
  ByteBuffer out;
  HttpResponseWriter(out, {.without_body = true}).Finish("hello");
  EXPECT_EQ(out.view(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
}

TEST(HttpStatus, HasALineAndAName) {
  EXPECT_EQ(HttpStatusLine(200), "HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(HttpStatusName(431), "Request Header Fields Too Large");
  EXPECT_EQ(HttpStatusName(299), "Internal Server Error");
}

TEST(RoomyText, WritesTheLargestNumbers) {
  std::string room(2 * RoomyText::kNumberRoom, '.');
  RoomyText text(room.data());
  text.PutNumber(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(text.end() - room.data(), 20);
  EXPECT_TRUE(room.starts_with("-9223372036854775808."));
}

}  // namespace
}  // namespace weir
