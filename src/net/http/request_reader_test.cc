#include "net/http/request_reader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using RequestOutcome = HttpRequestReader::Outcome;

constexpr HttpRequestReader::Bounds kSmallBounds = {.header = 1024, .body = 4096};

struct Read {
  RequestOutcome outcome{};
  std::string method{};
  std::string target{};
  std::string body{};
  std::size_t size = 0;
  bool keep_alive = false;
  HttpFault fault{};
};

// The first request of the bytes, of which so many come at a time.
Read ReadInPieces(const std::string& bytes, std::size_t piece) {
  HttpRequestReader reader;
  Read read;
  for (std::size_t there = 0; there < bytes.size();) {
    there = std::min(bytes.size(), there + piece);
    // What was changed in place must be seen again, though it may stand elsewhere.
    static std::string buffer;
    static HttpHead head;
    if (there <= piece) buffer.clear();
    buffer.append(bytes, buffer.size(), there - buffer.size());
    std::string moved = buffer;
    read.outcome = reader.Read(moved, kSmallBounds, head);
    buffer = moved;
    if (read.outcome == RequestOutcome::kIncomplete) continue;
    if (read.outcome == RequestOutcome::kFault) {
      read.fault = reader.fault();
      return read;
    }
    read.method = head.method;
    read.target = head.target;
    read.body.assign(reader.body().begin(), reader.body().end());
    read.size = reader.size();
    read.keep_alive = head.keep_alive;
    return read;
  }
  return read;
}
Read ReadAll(const std::string& bytes) { return ReadInPieces(bytes, bytes.size()); }

std::string Get(const std::string& headers) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}
std::string Chunked(const std::string& body) {
  return "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}

TEST(HttpRequestReader, ReadsARequestWithABody) {
  const std::string text =
      "POST /v1/check?a=b HTTP/1.1\r\nHost: weir:8080\r\ncontent-LENGTH: 5\r\nX-Empty:\r\n"
      "X-Blanks: \t a b \t\r\n\r\nhellorest";
  const Read read = ReadAll(text);
  EXPECT_EQ(read.outcome, RequestOutcome::kComplete);
  EXPECT_EQ(read.method, "POST");
  EXPECT_EQ(read.target, "/v1/check?a=b");
  EXPECT_EQ(read.body, "hello");
  EXPECT_EQ(read.size, text.size() - 4);
  EXPECT_TRUE(read.keep_alive);
}

TEST(HttpRequestReader, ShowsHeadersAsTheyWereSentWithoutBlanksAroundThem) {
  std::string text = Get("X-Empty:\r\nX-Blanks: \t a b \t\r\nX-High: gr\xc3\xbc\xc3\x9f\r\n");
  HttpRequestReader reader;
  HttpHead head;
  ASSERT_EQ(reader.Read(text, kSmallBounds, head), RequestOutcome::kComplete);
  ASSERT_EQ(head.headers().size(), 4U);
  EXPECT_EQ(head.headers()[1].name, "X-Empty");
  EXPECT_EQ(head.headers()[1].value, "");
  EXPECT_EQ(head.headers()[2].value, "a b");
  EXPECT_EQ(head.headers()[3].value, "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(head.host, "a");
}

TEST(HttpRequestReader, TakesPipelinedRequestsOneAfterTheOther) {
  std::string text = Get("") + Chunked("3\r\nabc\r\n0\r\n\r\n") + Get("Connection: close\r\n");
  HttpRequestReader reader;
  HttpHead head;
  std::span<char> rest(text);
  ASSERT_EQ(reader.Read(rest, kSmallBounds, head), RequestOutcome::kComplete);
  rest = rest.subspan(reader.size());
  ASSERT_EQ(reader.Read(rest, kSmallBounds, head), RequestOutcome::kComplete);
  EXPECT_EQ(std::string(reader.body().begin(), reader.body().end()), "abc");
  rest = rest.subspan(reader.size());
  ASSERT_EQ(reader.Read(rest, kSmallBounds, head), RequestOutcome::kComplete);
  EXPECT_FALSE(head.keep_alive);
  EXPECT_EQ(rest.size(), reader.size());
}

TEST(HttpRequestReader, KeepsConnectionsAsTheVersionsDo) {
  const auto kept = [](const std::string& text) { return ReadAll(text).keep_alive; };
  EXPECT_TRUE(kept("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_FALSE(kept("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, CLOSE\r\n\r\n"));
  EXPECT_FALSE(kept("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n"));
  EXPECT_FALSE(kept("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(kept("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

TEST(HttpRequestReader, SkipsOneEmptyLineBeforeARequest) {
  EXPECT_EQ(ReadAll("\r\n" + Get("")).size, Get("").size() + 2);
  EXPECT_EQ(ReadAll("\r\n\r\n" + Get("")).fault.status, 400);
}

struct Refused {
  std::string text;
  int status;
};

std::vector<Refused> RefusedRequests() {
  const std::string nul("\0", 1);
  return {
      {Get("Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
      {Get("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
      {Get("Content-Length: 5, 5\r\n"), 400},
      {Get("Content-Length: +5\r\n"), 400},
      {Get("Content-Length: -5\r\n"), 400},
      {Get("Content-Length: 0x5\r\n"), 400},
      {Get("Content-Length:\r\n"), 400},
      {Get("Content-Length: 5 5\r\n"), 400},
      {Get("Content-Length: 99999999999999999999\r\n"), 400},
      {Get("Content-Length: 18446744073709551617\r\n"), 400},
      {Get("Content-Length: 4097\r\n"), 413},
      {Get("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"), 400},
      {Get("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"), 400},
      {Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {Get("Transfer-Encoding: chunked, chunked\r\n"), 400},
      {Get("Transfer-Encoding: gzip, chunked\r\n"), 400},
      {Get("Transfer-Encoding: xchunked\r\n"), 400},
      {Get("Transfer-Encoding: identity\r\n"), 400},
      {Get("Transfer-Encoding:\r\n"), 400},
      {Get("Transfer-Encoding: \x0b"
           "chunked\r\n"),
       400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {Get("Host: a\r\n"), 400},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400},
      {"GET / HTTP/1.1\rHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n\rb\r\n\r\n", 400},
      {Get("A: b\r\n c\r\n"), 400},
      {Get("A: b\r\n\tc\r\n"), 400},
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {Get("A : b\r\n"), 400},
      {Get("A\t: b\r\n"), 400},
      {Get(": b\r\n"), 400},
      {Get("A\r\n"), 400},
      {Get("A\x80: b\r\n"), 400},
      {Get("A(: b\r\n"), 400},
      {Get("A: b" + nul + "\r\n"), 400},
      {Get("A: b\x7f\r\n"), 400},
      {Get("A: b\x01 and a long value behind it\r\n"), 400},
      {"G@T / HTTP/1.1\r\n\r\n", 400},
      {" GET / HTTP/1.1\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\n\r\n", 400},
      {"GET /\x01 HTTP/1.1\r\n\r\n", 400},
      {"GET /\x80 HTTP/1.1\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\n\r\n", 400},
      {"GET / http/1.1\r\n\r\n", 400},
      {"GET / HTTP/11\r\n\r\n", 400},
      {"GET / HTTP/1.2\r\n\r\n", 505},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"GET / HTTP/0.9\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {Get("Expect: nothing\r\n"), 417},
      {Get("Expect: 100-continue\r\nExpect: 100-continue\r\n"), 400},
      {Get("Authorization: a\r\nAuthorization: a\r\n"), 400},
      {Get("X: " + std::string(1024, 'x') + "\r\n"), 431},
      {Chunked("5;a=b\r\nhello\r\n0\r\n\r\n"), 400},
      {Chunked("5 \r\nhello\r\n0\r\n\r\n"), 400},
      {Chunked(" 5\r\nhello\r\n0\r\n\r\n"), 400},
      {Chunked("\r\n5\r\nhello\r\n0\r\n\r\n"), 400},
      {Chunked("0x5\r\nhello\r\n0\r\n\r\n"), 400},
      {Chunked("-5\r\nhello\r\n0\r\n\r\n"), 400},
      {Chunked("5\nhello\r\n0\r\n\r\n"), 400},
      {Chunked("5\r\nhello\n0\r\n\r\n"), 400},
      {Chunked("5\r\nhelloX\r\n0\r\n\r\n"), 400},
      {Chunked("5\r\nhello\rX0\r\n\r\n"), 400},
      {Chunked("5\r\nhello\r\n0\r\n\n"), 400},
      {Chunked("0000000000000000\r\n"), 400},
      {Chunked("fffffffffffffffff\r\n"), 400},
      {Chunked("1001\r\n"), 413},
      {Chunked("1000\r\n" + std::string(4096, 'x') + "\r\n1\r\n"), 413},
      {Chunked("0\r\nContent-Length: 5\r\n\r\n"), 400},
      {Chunked("0\r\nConnection: close\r\n\r\n"), 400},
      {Get("Connection: a b\r\n"), 400},
      {Get("Proxy-Connection: @\r\n"), 400},
      {Chunked("0\r\nA b\r\n\r\n"), 400},
      {Chunked("0\r\nA: " + std::string(1024, 'x') + "\r\n\r\n"), 413},
  };
}

TEST(HttpRequestReader, RefusesWhatIsWrongHoweverItComes) {
  for (const Refused& refused : RefusedRequests()) {
    const std::size_t pieces[] = {refused.text.size(), 1, 2, 7};
    for (const std::size_t piece : pieces) {
      const Read read = ReadInPieces(refused.text, piece);
      EXPECT_EQ(read.outcome, RequestOutcome::kFault) << refused.text;
      EXPECT_EQ(read.fault.status, refused.status) << refused.text << read.fault.message;
      EXPECT_FALSE(read.fault.message.empty());
    }
  }
}

TEST(HttpRequestReader, RefusesMoreHeadersThanItHasRoomFor) {
  std::string headers;
  for (int i = 0; i < 99; ++i) headers += "A:\r\n";
  EXPECT_EQ(ReadAll(Get(headers)).outcome, RequestOutcome::kComplete);
  EXPECT_EQ(ReadAll(Get(headers + "A:\r\n")).fault.status, 431);
}

TEST(HttpRequestReader, RefusesABodyInManyTinyChunks) {
  std::string body;
  for (int i = 0; i < 1000; ++i) body += "1\r\nx\r\n";
  EXPECT_EQ(ReadAll(Chunked(body)).fault.status, 413);
}

TEST(HttpRequestReader, PutsChunksTogetherAndIgnoresTrailers) {
  const std::string text = Chunked("5\r\nhello\r\n00A\r\n, world!\r\n\r\n0\r\nX-Sum: 1\r\n\r\n");
  for (const std::size_t piece : {text.size(), std::size_t{1}, std::size_t{3}}) {
    const Read read = ReadInPieces(text + "GET", piece);
    ASSERT_EQ(read.outcome, RequestOutcome::kComplete) << read.fault.message;
    EXPECT_EQ(read.body, "hello, world!\r\n");
    EXPECT_EQ(read.size, text.size());
    EXPECT_EQ(read.method, "POST");
    EXPECT_EQ(read.target, "/x");
  }
}

TEST(HttpRequestReader, SaysHowMuchItWants) {
  std::string text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345";
  HttpRequestReader reader;
  HttpHead head;
  EXPECT_EQ(reader.Read(std::span(text).first(20), kSmallBounds, head),
            RequestOutcome::kIncomplete);
  EXPECT_EQ(reader.wants(), 0U);
  EXPECT_EQ(reader.Read(text, kSmallBounds, head), RequestOutcome::kIncomplete);
  EXPECT_EQ(reader.wants(), text.size() + 5);
  text += "67890";
  EXPECT_EQ(reader.Read(text, kSmallBounds, head), RequestOutcome::kComplete);
  EXPECT_EQ(reader.wants(), 0U);
}

TEST(HttpRequestReader, KnowsOnceWhenTheClientWaitsToSendTheBody) {
  std::string text =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  HttpRequestReader reader;
  HttpHead head;
  EXPECT_EQ(reader.Read(text, kSmallBounds, head), RequestOutcome::kIncomplete);
  EXPECT_TRUE(reader.TakeContinue());
  EXPECT_FALSE(reader.TakeContinue());
  text += "ab";
  EXPECT_EQ(reader.Read(text, kSmallBounds, head), RequestOutcome::kComplete);
  EXPECT_FALSE(reader.TakeContinue());
  // Nobody waits who has sent some of it.
  text.pop_back();
  EXPECT_EQ(reader.Read(text, kSmallBounds, head), RequestOutcome::kIncomplete);
  EXPECT_FALSE(reader.TakeContinue());
}

TEST(HttpRequestReader, LooksAtALongHeadThatDripsInOnlyAFewTimes) {
  // A quadratic reader would take minutes.
  const HttpRequestReader::Bounds bounds = {.header = std::size_t{4} << 20, .body = 0};
  std::string text = Get("X: " + std::string(std::size_t{1} << 20, 'x') + "\r\n");
  HttpRequestReader reader;
  HttpHead head;
  for (std::size_t there = 1; there < text.size(); ++there) {
    ASSERT_EQ(reader.Read(std::span(text).first(there), bounds, head), RequestOutcome::kIncomplete);
  }
  EXPECT_EQ(reader.Read(text, bounds, head), RequestOutcome::kComplete);
}

RC_GTEST_PROP(HttpRequestReader, ReadsTheSameHoweverTheBytesAreCut, ()) {
  const auto chunks = *rc::gen::container<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::string<std::string>()));
  std::string body;
  std::string whole;
  for (const std::string& chunk : chunks) {
    static constexpr std::string_view kHex = "0123456789abcdef";
    std::string size;
    for (std::size_t rest = chunk.size(); rest != 0; rest /= 16) size.insert(0, 1, kHex[rest % 16]);
    body += size + "\r\n" + chunk + "\r\n";
    whole += chunk;
  }
  const std::string text = Chunked(body + "0\r\n\r\n");
  const Read read = ReadInPieces(text, *rc::gen::inRange<std::size_t>(1, text.size() + 1));
  const bool too_many = body.size() + 5 - whole.size() > kSmallBounds.header;
  if (too_many || whole.size() > kSmallBounds.body) {
    RC_ASSERT(read.fault.status == 413);
  } else {
    RC_ASSERT(read.outcome == RequestOutcome::kComplete);
    RC_ASSERT(read.body == whole);
    RC_ASSERT(read.size == text.size());
  }
}

TEST(SplitTarget, FindsPathAndQueryInEveryForm) {
  const auto split = [](std::string_view text) {
    const HttpTarget target = SplitTarget(text);
    return std::string(target.path) + " " + std::string(target.query);
  };
  EXPECT_EQ(split("/a/b?c=d?e"), "/a/b c=d?e");
  EXPECT_EQ(split("/a"), "/a ");
  EXPECT_EQ(split("http://host:80/a?b"), "/a b");
  EXPECT_EQ(split("http://host?b"), " b");
  EXPECT_EQ(split("http://host"), "/ ");
  EXPECT_EQ(split("/x?u=http://host/y"), "/x u=http://host/y");
  EXPECT_EQ(split("*"), "* ");
  EXPECT_EQ(split("host:443"), "host:443 ");
}

}  // namespace
}  // namespace weir
