#include "policy/override_file.h"

#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using FileProblemKind = OverrideFileProblem::Kind;

constexpr OverrideFormat kCsv = OverrideFormat::kCsv;
constexpr OverrideFormat kJson = OverrideFormat::kJsonLines;

// What was read, as one line of text for each row: "2 user=acme -> 5/s".
struct Reading {
  std::vector<std::string> rows;
  std::vector<OverrideFileProblem> problems;
};

Reading ReadRows(std::string_view text, OverrideFormat format) {
  Reading reading;
  reading.problems = ReadOverrideFile(text, format, [&](const OverrideRow& row) {
    std::string line = std::to_string(row.line);
    for (const auto& [name, value] : row.key)
      line.append(" ").append(name).append("=").append(value);
    reading.rows.push_back(line.append(" -> ").append(row.limit));
  });
  return reading;
}

std::vector<std::string> RowsOf(std::string_view text, OverrideFormat format) {
  Reading reading = ReadRows(text, format);
  for (const OverrideFileProblem& problem : reading.problems) {
    ADD_FAILURE() << problem.line << ":" << problem.column << ": " << problem.message;
  }
  return reading.rows;
}

// "line:column", the kind and the message of the only problem.
struct FoundProblem {
  std::string place;
  FileProblemKind kind;
  std::string message;
};
FoundProblem FirstProblem(std::string_view text, OverrideFormat format) {
  const Reading reading = ReadRows(text, format);
  EXPECT_THAT(reading.problems, SizeIs(1)) << text;
  if (reading.problems.empty()) return {};
  const OverrideFileProblem& problem = reading.problems.front();
  return {std::to_string(problem.line) + ":" + std::to_string(problem.column), problem.kind,
          problem.message};
}

void ExpectProblem(std::string_view text, OverrideFormat format, FileProblemKind kind,
                   const std::string& place, const std::string& part_of_message = "") {
  const FoundProblem found = FirstProblem(text, format);
  EXPECT_EQ(found.kind, kind) << text << found.message;
  EXPECT_EQ(found.place, place) << text << found.message;
  EXPECT_THAT(found.message, HasSubstr(part_of_message));
}

TEST(OverrideFormat, GoesByTheEndOfTheName) {
  EXPECT_EQ(OverrideFormatOf("users.csv").value(), kCsv);
  EXPECT_EQ(OverrideFormatOf("/etc/weir/users.jsonl").value(), kJson);
  EXPECT_EQ(OverrideFormatOf("a.b.ndjson").value(), kJson);
  for (const char* name : {"", "csv", "users.json", "users.csv.gz", "users.CSV", "users"}) {
    const Result<OverrideFormat> format = OverrideFormatOf(name);
    ASSERT_FALSE(format.has_value()) << name;
    EXPECT_THAT(format.error().message, AllOf(HasSubstr(name), HasSubstr(".ndjson")));
  }
}

// --- CSV ---

TEST(OverrideCsv, HasARowPerLineWithTheColumnsInAnyOrder) {
  EXPECT_THAT(RowsOf("user,limit\nacme,5/s\nother,6/s\n", kCsv),
              ElementsAre("2 user=acme -> 5/s", "3 user=other -> 6/s"));
  EXPECT_THAT(RowsOf("limit,path.id,user\n5/s,7,acme", kCsv),
              ElementsAre("2 path.id=7 user=acme -> 5/s"));
}

TEST(OverrideCsv, MayHaveAKeyColumnInsteadOfAttributes) {
  EXPECT_THAT(RowsOf("key,limit\n192.0.2.7,5/s\n", kCsv), ElementsAre("2 =192.0.2.7 -> 5/s"));
}

TEST(OverrideCsv, SpellsAttributesAsRulesDo) {
  EXPECT_THAT(RowsOf("header.X-Team,limit\nA,5/s\n", kCsv),
              ElementsAre("2 header.x-team=A -> 5/s"));
}

TEST(OverrideCsv, LeavesOutEmptyValues) {
  EXPECT_THAT(RowsOf("user,org,limit\n,acme,5/s\nx,\"\",6/s\n", kCsv),
              ElementsAre("2 org=acme -> 5/s", "3 user=x -> 6/s"));
}

TEST(OverrideCsv, MayHaveQuotes) {
  EXPECT_THAT(RowsOf("\"user\",\"limit\"\n\"acme\",\"5/s\"\n\"a,b\",6/s\n", kCsv),
              ElementsAre("2 user=acme -> 5/s", "3 user=a,b -> 6/s"));
  EXPECT_THAT(RowsOf("user,org,limit\n\"a\"\"b\",\"\"\"\"\"\",5/s\n\"\"\"\",\"x\"\"\",5/s", kCsv),
              ElementsAre("2 user=a\"b org=\"\" -> 5/s", "3 user=\" org=x\" -> 5/s"));
}

TEST(OverrideCsv, MayHaveLineEndsInQuotesAndCountsThem) {
  EXPECT_THAT(RowsOf("user,limit\n\"a\nb\r\nc\",5/s\n\"d\",6/s\n", kCsv),
              ElementsAre("2 user=a\nb\r\nc -> 5/s", "5 user=d -> 6/s"));
}

TEST(OverrideCsv, MayEndItsLinesAsWindowsDoes) {
  EXPECT_THAT(RowsOf("user,limit\r\nacme,5/s\r\n\r\n\"b\",\"6/s\"\r\nc,7/s\r", kCsv),
              ElementsAre("2 user=acme -> 5/s", "4 user=b -> 6/s", "5 user=c -> 7/s"));
}

TEST(OverrideCsv, PassesOverEmptyLinesAndRemarks) {
  EXPECT_THAT(RowsOf("\n# a, \"remark\nuser,limit\n\n#b\nacme,5/s\n#\n\"#1\",6/s\n#end", kCsv),
              ElementsAre("6 user=acme -> 5/s", "8 user=#1 -> 6/s"));
}

TEST(OverrideCsv, MayBeginWithAByteOrderMark) {
  EXPECT_THAT(RowsOf("\xef\xbb\xbfuser,limit\nacme,5/s\n", kCsv),
              ElementsAre("2 user=acme -> 5/s"));
  ExpectProblem("\xef\xbb\xbfusr,limit\n", kCsv, FileProblemKind::kName, "1:1");
}

TEST(OverrideCsv, MayHaveNoRows) { EXPECT_THAT(RowsOf("user,limit\n", kCsv), IsEmpty()); }

TEST(OverrideCsv, MustHaveAHeader) {
  ExpectProblem("", kCsv, FileProblemKind::kColumns, "1:1", "header");
  ExpectProblem("\n#x\n", kCsv, FileProblemKind::kColumns, "3:1", "header");
}

TEST(OverrideCsv, HasAHeaderOfKnownNames) {
  ExpectProblem("user,usr,limit\n", kCsv, FileProblemKind::kName, "1:6", "\"usr\"");
  ExpectProblem("user,,limit\n", kCsv, FileProblemKind::kName, "1:6");
  ExpectProblem("user,limit,\n", kCsv, FileProblemKind::kName, "1:12");
  ExpectProblem("user, limit\n", kCsv, FileProblemKind::kSyntax, "1:6", "blanks");
  ExpectProblem("user,limit\nacme ,5/s\n", kCsv, FileProblemKind::kSyntax, "2:1", "blanks");
  ExpectProblem("header.,limit\n", kCsv, FileProblemKind::kName, "1:1");
  ExpectProblem("key,user,limit\n", kCsv, FileProblemKind::kName, "1:1", "key");
  EXPECT_THAT(ReadRows("usr,ogr,limit\na,b,c\n", kCsv).problems, SizeIs(2));
}

TEST(OverrideCsv, HasEachNameOnce) {
  ExpectProblem("user,limit,user\n", kCsv, FileProblemKind::kDuplicateName, "1:12", "\"user\"");
  ExpectProblem("limit,key,limit\n", kCsv, FileProblemKind::kDuplicateName, "1:11", "\"limit\"");
  ExpectProblem("key,limit,key\n", kCsv, FileProblemKind::kDuplicateName, "1:11");
  ExpectProblem("header.a,header.A,limit\n", kCsv, FileProblemKind::kDuplicateName, "1:10");
}

TEST(OverrideCsv, HasALimitAndAKey) {
  ExpectProblem("user,org\n", kCsv, FileProblemKind::kNoLimit, "1:1");
  ExpectProblem("limit\n5/s\n", kCsv, FileProblemKind::kNoKey, "1:1");
  ExpectProblem("user,limit\nacme,\n", kCsv, FileProblemKind::kNoLimit, "2:1");
  ExpectProblem("user,limit\n,5/s\n", kCsv, FileProblemKind::kNoKey, "2:1");
  ExpectProblem("key,limit\n\"\",5/s\n", kCsv, FileProblemKind::kNoKey, "2:1");
}

TEST(OverrideCsv, HasAsManyValuesAsNames) {
  ExpectProblem("user,limit\nacme\n", kCsv, FileProblemKind::kColumns, "2:5", "1 values");
  ExpectProblem("user,limit\r\nacme\r\n", kCsv, FileProblemKind::kColumns, "2:5");
  ExpectProblem("user,limit\nacme,5/s,x\n", kCsv, FileProblemKind::kColumns, "2:10", "more than 2");
  ExpectProblem("user,limit\nacme,5/s,\n", kCsv, FileProblemKind::kColumns, "2:10");
  ExpectProblem("user,limit\n \n", kCsv, FileProblemKind::kSyntax, "2:1");
}

TEST(OverrideCsv, ClosesItsQuotes) {
  ExpectProblem("user,limit\na,5/s\nb,\"5/s\nc,6/s\n", kCsv, FileProblemKind::kSyntax, "3:3",
                "never closed");
  ExpectProblem("user,limit\na,\"", kCsv, FileProblemKind::kSyntax, "2:3");
  ExpectProblem("user,limit\na,\"\"\"", kCsv, FileProblemKind::kSyntax, "2:3");
  ExpectProblem("\"user,limit\n", kCsv, FileProblemKind::kSyntax, "1:1");
}

TEST(OverrideCsv, HasQuotesOnlyAroundAWholeValue) {
  ExpectProblem("user,limit\na\"b,5/s\n", kCsv, FileProblemKind::kSyntax, "2:2", "doubled");
  ExpectProblem("user,limit\n\"a\"b,5/s\n", kCsv, FileProblemKind::kSyntax, "2:4", "doubled");
  ExpectProblem("user,limit\n\"a\nb\" ,5/s\n", kCsv, FileProblemKind::kSyntax, "3:3");
  ExpectProblem("user,limit\na\rb,5/s\n", kCsv, FileProblemKind::kSyntax, "2:2", "carriage return");
}

TEST(OverrideCsv, CountsColumnsInCharacters) {
  ExpectProblem("user,limit\n\"\xc3\xa9\xe2\x82\xac\"x,5/s\n", kCsv, FileProblemKind::kSyntax,
                "2:5");
}

TEST(OverrideCsv, GoesOnAfterARowWithAProblem) {
  const Reading reading = ReadRows("user,limit\na\nb,5/s\nc\"d,5/s\ne,6/s\n", kCsv);
  EXPECT_THAT(reading.rows, ElementsAre("3 user=b -> 5/s", "5 user=e -> 6/s"));
  EXPECT_THAT(reading.problems, SizeIs(2));
}

TEST(OverrideCsv, HasAtMost64Columns) {
  std::string header = "limit";
  std::string row = "5/s";
  for (std::size_t i = 1; i < kMaxOverrideColumns; ++i) {
    header += ",header.a" + std::to_string(i);
    row += ",x";
  }
  EXPECT_THAT(RowsOf(header + "\n" + row + "\n", kCsv), SizeIs(1));
  EXPECT_EQ(FirstProblem(header + ",user\n" + row + ",x\n", kCsv).kind, FileProblemKind::kTooLarge);
}

// --- JSON lines ---

TEST(OverrideJson, HasAnObjectPerLine) {
  EXPECT_THAT(RowsOf(R"({"user":"acme","limit":"5/s"})"
                     "\n"
                     R"(  { "limit" : "6/s" , "org" : "o", "user" : "u" }  )"
                     "\n",
                     kJson),
              ElementsAre("1 user=acme -> 5/s", "2 org=o user=u -> 6/s"));
  EXPECT_THAT(RowsOf(R"({"key":"192.0.2.7","limit":"5/s"})", kJson),
              ElementsAre("1 =192.0.2.7 -> 5/s"));
}

TEST(OverrideJson, MayHaveOtherAttributesInEveryRow) {
  EXPECT_THAT(RowsOf(R"({"user":"u","limit":"1/s"})"
                     "\n"
                     R"({"limit":"2/s","header.X-A":"h","user":"v"})"
                     "\n"
                     R"({"org":"o","limit":"3/s"})"
                     "\n"
                     R"({"key":"k","limit":"4/s"})",
                     kJson),
              ElementsAre("1 user=u -> 1/s", "2 header.x-a=h user=v -> 2/s", "3 org=o -> 3/s",
                          "4 =k -> 4/s"));
}

TEST(OverrideJson, MayHaveEscapesInNamesAndValues) {
  EXPECT_THAT(RowsOf(R"({"\u0075ser":"a\"\\\/\n\u00e9\ud83d\ude00","limit":"5/s"})", kJson),
              ElementsAre("1 user=a\"\\/\n\xc3\xa9\xf0\x9f\x98\x80 -> 5/s"));
}

TEST(OverrideJson, LeavesOutEmptyValues) {
  EXPECT_THAT(RowsOf(R"({"user":"","org":"o","limit":"5/s"})", kJson),
              ElementsAre("1 org=o -> 5/s"));
}

TEST(OverrideJson, PassesOverEmptyLinesAndRemarks) {
  EXPECT_THAT(RowsOf("\xef\xbb\xbf\n# {\n \t\r\n{\"user\":\"a\",\"limit\":\"5/s\"}\r\n\n", kJson),
              ElementsAre("4 user=a -> 5/s"));
  EXPECT_THAT(RowsOf("", kJson), IsEmpty());
}

TEST(OverrideJson, MustBeOneObjectPerLine) {
  for (const char* line : {"x",
                           "{",
                           "}",
                           "[]",
                           "\"a\"",
                           "1",
                           "null",
                           "{]",
                           "{}}",
                           "{{}",
                           "{\"user\"}",

                           "{\"user\" \"a\"}",
                           "{\"user\":\"a\",}",
                           "{,\"user\":\"a\"}",
                           "{user:\"a\"}",
                           "{'user':'a'}",
                           "{\"user\":\"a\" \"limit\":\"b\"}",
                           "{\"user\":\"a\",\"limit\":\"b\"",
                           "{\"user\":\"a\",\"limit\":\"b\"]",
                           "{\"user\":\"a\",\"limit\":\"b\"},",
                           "{\"user\":\"a\",\"limit\":\"b\"}{\"user\":\"a\",\"limit\":\"b\"}",
                           "{\"user\":\"a\",\"limit\":\"b\"} x",
                           "{\"user\":\"a\",\"limit\":\"b\"} # c",
                           "{\"user\":\"a\",\"limit\":\"b",
                           "{\"user\":\"\\x\",\"limit\":\"b\"}",
                           "{\"user\":\"\\ud83d\",\"limit\":\"b\"}",
                           "{\"us\\qer\":\"a\",\"limit\":\"b\"}",
                           "{\"user\":\"a\tb\",\"limit\":\"b\"}"}) {
    const Reading reading = ReadRows(line, kJson);
    ASSERT_THAT(reading.problems, SizeIs(1)) << line;
    EXPECT_EQ(reading.problems.front().kind, FileProblemKind::kSyntax) << line;
    EXPECT_THAT(reading.rows, IsEmpty()) << line;
  }
}

TEST(OverrideJson, DoesNotReadOnIntoTheNextLine) {
  const Reading reading =
      ReadRows("{\"user\":\"a\",\n\"limit\":\"5/s\"}\n{\"user\":\"b\",\"limit\":\"5/s\"}", kJson);
  EXPECT_THAT(reading.rows, ElementsAre("3 user=b -> 5/s"));
  EXPECT_THAT(reading.problems, SizeIs(2));
}

TEST(OverrideJson, SaysWhereTheLineGoesOnAfterTheObject) {
  ExpectProblem("\n{\"user\":\"a\",\"limit\":\"b\"} {}", kJson, FileProblemKind::kSyntax, "2:26",
                "goes on");
}

TEST(OverrideJson, HasOnlyTexts) {
  for (const char* value : {"", "1", "1.5", "null", "true", "[\"a\"]", "{\"a\":\"b\"}"}) {
    ExpectProblem(std::string("{\"user\":\"a\",\"limit\":") + value + "}", kJson,
                  FileProblemKind::kType, "1:13", "\"limit\"");
  }
}

TEST(OverrideJson, HasKnownNamesEachOnce) {
  ExpectProblem(R"({"user":"a","usr":"b","limit":"c"})", kJson, FileProblemKind::kName, "1:13",
                "\"usr\"");
  ExpectProblem(R"({"user":"a","limit":"c","user":"b"})", kJson, FileProblemKind::kDuplicateName,
                "1:25");
  ExpectProblem(R"({"user":"","limit":"c","user":"b"})", kJson, FileProblemKind::kDuplicateName,
                "1:24");
  ExpectProblem(R"({"limit":"c","user":"b","limit":"c"})", kJson, FileProblemKind::kDuplicateName,
                "1:25");
  ExpectProblem(R"({"header.a":"c","header.A":"b","limit":"c"})", kJson,
                FileProblemKind::kDuplicateName, "1:17");
  ExpectProblem(R"({"key":"a","user":"b","limit":"c"})", kJson, FileProblemKind::kName, "1:12");
  ExpectProblem(R"({"user":"a","limit":"c","key":"b"})", kJson, FileProblemKind::kName, "1:25");
}

TEST(OverrideJson, HasALimitAndAKey) {
  ExpectProblem(R"({"user":"a"})", kJson, FileProblemKind::kNoLimit, "1:1");
  ExpectProblem(R"({"user":"a","limit":""})", kJson, FileProblemKind::kNoLimit, "1:1");
  ExpectProblem(R"({"limit":"5/s"})", kJson, FileProblemKind::kNoKey, "1:1");
  ExpectProblem(R"({"limit":"5/s","user":""})", kJson, FileProblemKind::kNoKey, "1:1");
  ExpectProblem("{}", kJson, FileProblemKind::kNoLimit, "1:1");
}

TEST(OverrideJson, HasAtMost64Names) {
  std::string line = "{\"limit\":\"5/s\"";
  for (std::size_t i = 1; i < kMaxOverrideColumns; ++i) {
    line += ",\"header.a" + std::to_string(i) + "\":\"x\"";
  }
  EXPECT_THAT(RowsOf(line + "}", kJson), SizeIs(1));
  EXPECT_EQ(FirstProblem(line + ",\"user\":\"x\"}", kJson).kind, FileProblemKind::kTooLarge);
}

// --- Both ---

TEST(OverrideFile, IsUtf8) {
  ExpectProblem("user,limit\nab\xff,5/s\n", kCsv, FileProblemKind::kEncoding, "2:3", "UTF-8");
  ExpectProblem("user,limit\na\xc3\xa9\xc3,5/s\n", kCsv, FileProblemKind::kEncoding, "2:3");
  ExpectProblem("user,limit\na,5/s\n\xe2\x82", kCsv, FileProblemKind::kEncoding, "3:1");
  ExpectProblem("{\"user\":\"\x80\",\"limit\":\"5/s\"}", kJson, FileProblemKind::kEncoding, "1:10");
  ExpectProblem("\xff\xfeu\0s\0e\0r\0", kCsv, FileProblemKind::kEncoding, "1:1");
}

TEST(OverrideFile, HasAtMostSoManyProblems) {
  std::string csv = "user,limit\n";
  std::string json;
  for (int i = 0; i < 100; ++i) {
    csv += "x\n";
    json += "{}\n";
  }
  EXPECT_THAT(ReadRows(csv, kCsv).problems, SizeIs(kMaxOverrideProblems));
  EXPECT_THAT(ReadRows(json, kJson).problems, SizeIs(kMaxOverrideProblems));
}

TEST(OverrideFile, HasRowsOfLimitedLength) {
  const auto csv = [](std::size_t length) {
    return "user,limit\n" + std::string(length - 4, 'x') + ",5/s\nb,6/s\n";
  };
  EXPECT_THAT(RowsOf(csv(kMaxOverrideRowBytes), kCsv), SizeIs(2));
  ExpectProblem(csv(kMaxOverrideRowBytes + 1), kCsv, FileProblemKind::kTooLarge, "2:1");
  const auto json = [](std::size_t length) {
    return "{\"limit\":\"5/s\",\"user\":\"" + std::string(length - 25, 'x') + "\"}\n";
  };
  EXPECT_THAT(RowsOf(json(kMaxOverrideRowBytes), kJson), SizeIs(1));
  ExpectProblem(json(kMaxOverrideRowBytes + 1), kJson, FileProblemKind::kTooLarge, "1:1");
}

TEST(OverrideFile, HasALimitedNumberOfRows) {
  std::string text = "user,limit\n";
  text.reserve(text.size() + 4 * (kMaxOverrideRows + 10));
  for (std::size_t i = 0; i < kMaxOverrideRows; ++i) text += "a,b\n";
  std::size_t rows = 0;
  const OverrideSink count = [&](const OverrideRow&) { ++rows; };
  EXPECT_THAT(ReadOverrideFile(text, kCsv, count), IsEmpty());
  EXPECT_EQ(rows, kMaxOverrideRows);
  rows = 0;
  const std::vector<OverrideFileProblem> problems =
      ReadOverrideFile(text + "a,b\na,b\n", kCsv, count);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems.front().kind, FileProblemKind::kTooLarge);
  EXPECT_EQ(problems.front().line, 5'000'002);
  EXPECT_EQ(rows, kMaxOverrideRows);
}

TEST(OverrideFile, MayEndAtAnyByte) {
  const std::string csv =
      "\xef\xbb\xbf# x\r\n\"user\",header.a,limit\r\n\"a\"\"b\n\xc3\xa9\",,\"5/s\"\r\n\n"
      "b,\"\",6/s\n\"\",\"c\",7/s";
  const std::string json =
      "\xef\xbb\xbf# x\r\n{\"user\":\"a\\\"\\u00e9\\ud83d\\ude00\xc3\xa9\",\"limit\":\"5/s\"}\r\n"
      "\n {\"key\" : \"b\" , \"limit\":\"6/s\"} \n{\"org\":[1,{\"a\":null}],\"limit\":\"7/s\"}";
  for (const auto& [text, format] : {std::pair(csv, kCsv), std::pair(json, kJson)}) {
    const std::size_t all = ReadRows(text, format).rows.size();
    for (std::size_t length = 0; length < text.size(); ++length) {
      // In memory of its own, so that reading beyond its end would be noticed.
      const std::vector<char> part(text.begin(),
                                   text.begin() + static_cast<std::ptrdiff_t>(length));
      const Reading reading = ReadRows({part.data(), part.size()}, format);
      EXPECT_LE(reading.rows.size(), all) << length;
      for (const OverrideFileProblem& problem : reading.problems) {
        EXPECT_FALSE(problem.message.empty());
        EXPECT_GE(problem.line, 1);
        EXPECT_GE(problem.column, 1);
      }
    }
  }
}

// --- Whatever is written is read ---

std::string QuotedForCsv(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string{c};
  return quoted + "\"";
}

std::string QuotedForJson(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || c == '"' || c == '\\') {
      quoted += std::string("\\u00") + kDigits[byte / 16] + kDigits[byte % 16];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

rc::Gen<std::string> AnyText() {
  return rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab,\"\n\r\\{}:# \0\t", 14))));
}

RC_GTEST_PROP(OverrideFile, GivesWhatWasWritten, ()) {
  const auto keys = *rc::gen::container<std::vector<std::string>>(AnyText());
  std::string csv = "limit,user\n";
  std::string json;
  for (const std::string& key : keys) {
    csv += "5/s," + QuotedForCsv(key) + "\n";
    json += "{\"user\":" + QuotedForJson(key) + ",\"limit\":\"5/s\"}\n";
  }
  for (const auto& [text, format] : {std::pair(csv, kCsv), std::pair(json, kJson)}) {
    std::vector<std::string> read;
    const auto problems = ReadOverrideFile(text, format, [&](const OverrideRow& row) {
      RC_ASSERT(row.key.size() == 1u);
      RC_ASSERT(row.limit == "5/s");
      read.emplace_back(row.key.front().second);
    });
    RC_ASSERT(problems.empty());
    RC_ASSERT(read == keys);
  }
}

}  // namespace
}  // namespace weir
