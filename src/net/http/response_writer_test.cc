#include "net/http/response_writer.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "net/http/date_line.h"

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

TEST(HttpResponseWriter, SaysWhenTheResponseWasMade) {
  HttpDateLine date;
  date.SetTo(std::chrono::sys_seconds(std::chrono::seconds(784'111'777)));
  ByteBuffer out;
  HttpResponseWriter(out, {.persistence = HttpPersistence::kClose, .date = date.text()}).Finish("");
  EXPECT_EQ(out.view(),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n"
            "Content-Length: 0\r\n\r\n");
}

TEST(HttpDateLine, IsWrittenAsTheStandardHasIt) {
  HttpDateLine date;
  EXPECT_EQ(date.text(), "");
  const auto at = [&](std::int64_t seconds) {
    date.SetTo(std::chrono::sys_seconds(std::chrono::seconds(seconds)));
    EXPECT_EQ(date.text().size(), HttpDateLine::kSize);
    return date.text();
  };
  EXPECT_EQ(at(0), "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
  EXPECT_EQ(at(784'111'777), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  EXPECT_EQ(at(784'111'777), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  EXPECT_EQ(at(784'111'778), "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
  EXPECT_EQ(at(1'709'251'199), "Date: Thu, 29 Feb 2024 23:59:59 GMT\r\n");
  EXPECT_EQ(at(-1), "Date: Wed, 31 Dec 1969 23:59:59 GMT\r\n");
  EXPECT_EQ(at(std::int64_t{1} << 50), "Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n");
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
