#include "net/http/head_memo.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "net/http/request_head.h"

namespace weir {
namespace {

using HeadOutcome = HttpHeadParser::Outcome;

std::string HeadWith(const std::string& length) {
  return "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: " + length +
         "\r\nAccept: b\r\n\r\n";
}

void Keep(HttpHeadMemo& memo, const std::string& head, const std::string& length) {
  memo.Keep(head, std::string_view(head).substr(head.find(length), length.size()));
}

TEST(HttpHeadMemo, RecallsTheSameHeadWithAnotherLength) {
  HttpHeadMemo memo;
  Keep(memo, HeadWith("75"), "75");
  EXPECT_TRUE(memo.Recall(HeadWith("75")));
  EXPECT_TRUE(memo.Recall(HeadWith("80") + "and what comes behind"));
  EXPECT_EQ(memo.length(), "80");
  EXPECT_EQ(memo.text(), HeadWith("80"));
}

TEST(HttpHeadMemo, RecallsNothingElse) {
  HttpHeadMemo memo;
  EXPECT_FALSE(memo.Recall(""));
  EXPECT_FALSE(memo.Recall(HeadWith("75")));
  Keep(memo, HeadWith("75"), "75");
  EXPECT_FALSE(memo.Recall(HeadWith("5")));
  EXPECT_FALSE(memo.Recall(HeadWith("175")));
  EXPECT_FALSE(memo.Recall(HeadWith("7,")));
  EXPECT_FALSE(memo.Recall(HeadWith(" 7")));
  const std::string head = HeadWith("75");
  for (std::size_t i = 0; i < head.size(); ++i) {
    EXPECT_FALSE(memo.Recall(head.substr(0, i))) << i;
    std::string other = head;
    other[i] ^= 0x20;
    EXPECT_FALSE(memo.Recall(other)) << i;
  }
  EXPECT_TRUE(memo.Recall(head));
}

TEST(HttpHeadMemo, KeepsNoHeadThatIsTooLong) {
  HttpHeadMemo memo;
  Keep(memo, HeadWith("75"), "75");
  const std::string head = HeadWith("75") + std::string(HttpHeadMemo::kMostBytes, 'a');
  Keep(memo, head, "75");
  EXPECT_FALSE(memo.Recall(head));
  EXPECT_FALSE(memo.Recall(HeadWith("75")));
}

struct Parsed {
  HeadOutcome outcome{};
  std::string fault{};
  std::vector<std::string> texts{};
  std::vector<std::uint64_t> numbers{};

  friend bool operator==(const Parsed&, const Parsed&) = default;
};
Parsed Parse(const std::string& bytes, HttpHead& head) {
  HttpHeadParser parser;
  Parsed parsed{.outcome = parser.Parse(bytes, head)};
  if (parsed.outcome == HeadOutcome::kFault) parsed.fault = parser.fault().message;
  if (parsed.outcome != HeadOutcome::kComplete) return parsed;
  for (const std::string_view text : {head.method, head.target, head.host, head.authorization,
                                      head.weir_token, head.accept, head.length_text}) {
    parsed.texts.emplace_back(text);
  }
  for (const NamedValue& field : head.headers()) {
    parsed.texts.emplace_back(field.name);
    parsed.texts.emplace_back(field.value);
  }
  parsed.numbers = {static_cast<std::uint64_t>(head.version),
                    head.keep_alive,
                    head.chunked,
                    head.expects_continue,
                    head.has_host,
                    head.has_length,
                    head.has_expect,
                    head.says_keep_alive,
                    head.says_close,
                    head.has_cookie,
                    head.length,
                    head.size};
  return parsed;
}

TEST(HttpHeadMemo, KeepsNoSecret) {
  const std::string plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  HttpHead head;
  for (const std::string secret : {"Authorization: Bearer t", "X-Weir-Token: t", "Cookie: s=t"}) {
    for (int i = 0; i < 2; ++i) {
      Parse("GET / HTTP/1.1\r\nHost: a\r\n" + secret + "\r\n\r\n", head);
      EXPECT_FALSE(head.is_of_memo);
      EXPECT_EQ(head.memo.text(), "") << secret;
    }
  }
  Parse(plain, head);
  Parse(plain, head);
  EXPECT_TRUE(head.is_of_memo);
}

RC_GTEST_PROP(HttpHeadMemo, MakesNoDifferenceToWhatIsRead, ()) {
  // Few kinds of lines, so that the same head comes again, and again after others.
  const auto line = rc::gen::element<std::string>(
      "Host: a\r\n", "Content-Length: 10\r\n", "Content-Length: 27\r\n", "Content-Length: 9 \r\n",
      "Authorization: Bearer t\r\n", "X-Weir-Token: t\r\n", "Cookie: a=b\r\n", "Accept: */*\r\n",
      "Connection: close\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 1x\r\n");
  HttpHead shared;
  for (int i = 0; i < 30; ++i) {
    const auto lines = *rc::gen::resize(2, rc::gen::container<std::vector<std::string>>(line));
    std::string bytes = "POST / HTTP/1.1\r\nHost: h\r\n";
    if (*rc::gen::inRange(0, 8) == 0) bytes = "GET /other HTTP/1.0\r\n";
    for (const std::string& one : lines) bytes += one;
    bytes += "\r\nbehind";
    if (*rc::gen::inRange(0, 8) == 0) bytes.resize(bytes.size() / 2);
    HttpHead fresh;
    RC_ASSERT(Parse(bytes, shared) == Parse(bytes, fresh));
    std::ranges::fill(bytes, '#');  // Nothing may be looked at afterwards.
  }
}

}  // namespace
}  // namespace weir
