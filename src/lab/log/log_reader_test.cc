// threads
// What the reader does with everything a disk may hold: order, several files, compression, damage,
// rubbish, and what is no log at all.
#include "lab/log/log_reader.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "lab/log/log_samples.h"

namespace weir::lab {
namespace {

using std::chrono::seconds;

// A line at so many seconds after a whole hour.
std::string Line(int second, const std::string& path = "/") {
  char time[16];
  std::snprintf(time, sizeof time, "%02d:%02d:%02d", 10 + second / 3600, second / 60 % 60,
                second % 60);
  return std::string("192.0.2.1 - - [02/Jan/2026:") + time + " +0000] \"GET " + path +
         " HTTP/1.1\" 200 5\n";
}

std::string Gzip(const std::string& text) {
  z_stream zlib{};
  EXPECT_EQ(::deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&zlib, text.size()) + 64, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(zlib.total_out);
  ::deflateEnd(&zlib);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  out.resize(::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// Many lines, of which no two are alike, in order.
std::string ManyLines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += Line(i / 10, "/item/" + std::to_string(i * 7919));
  return text;
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "weir-logs-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path folder_;
};

using LogFiles = Files;

std::vector<std::string> PathsOf(const WholeLog& log) {
  std::vector<std::string> paths;
  for (const KeptRecord& request : log.requests) paths.push_back(request.path);
  return paths;
}

TEST(LogOrder, IsThatOfTimeWithinTheHorizon) {
  LogSettings settings;
  settings.horizon = seconds(5);
  const WholeLog log = ReadText(
      Line(3, "/d") + Line(0, "/a") + Line(2, "/c") + Line(1, "/b") + Line(3, "/e") + Line(9, "/f"),
      settings);
  EXPECT_EQ(PathsOf(log), (std::vector<std::string>{"/a", "/b", "/c", "/d", "/e", "/f"}));
  EXPECT_EQ(log.requests[0].line, 2U);
  EXPECT_EQ(log.counts[0].late, 0U);
}

TEST(LogOrder, LeavesOutWhatIsLaterThanTheHorizonAndSaysSo) {
  LogSettings settings;
  settings.horizon = seconds(5);
  const WholeLog log = ReadText(
      Line(10) + Line(5, "/just") + Line(4, "/late") + Line(11) + Line(5, "/too"), settings);
  EXPECT_EQ(PathsOf(log), (std::vector<std::string>{"/just", "/", "/"}));
  EXPECT_EQ(log.counts[0].late, 2U);
  EXPECT_EQ(log.counts[0].requests, 3U);
  EXPECT_EQ(log.counts[0].lines, 5U);
  ASSERT_EQ(log.counts[0].examples.size(), 2U);
  EXPECT_EQ(log.counts[0].examples[0].line, 3U);
  EXPECT_NE(log.counts[0].examples[0].text.find("/late"), std::string::npos);
}

// A block holds some three thousand lines, so this goes over many of them.
TEST(LogOrder, IsTheSameForAnyNumberOfThreadsAndEqualsAModel) {
  std::mt19937 random(7);
  struct Model {
    int second;
    std::uint64_t line;
  };
  std::vector<Model> expected;
  std::string text;
  std::uint64_t late = 0;
  int newest = 0;
  constexpr int kHorizon = 20;
  for (std::uint64_t line = 1; line <= 20'000; ++line) {
    const int around = static_cast<int>(line / 10);
    const int second = std::max(0, around - static_cast<int>(random() % 30));
    text += Line(second, "/padding-so-that-blocks-hold-fewer-lines/" + std::to_string(line));
    if (second < newest - kHorizon) {
      ++late;
      continue;
    }
    newest = std::max(newest, second);
    expected.push_back({.second = second, .line = line});
  }
  std::ranges::sort(expected, {}, [](const Model& it) { return std::pair(it.second, it.line); });
  ASSERT_GT(late, 100U);
  for (const int threads : {1, 2, 5}) {
    LogSettings settings;
    settings.horizon = seconds(kHorizon);
    settings.threads = threads;
    const WholeLog log = ReadText(text, settings);
    ASSERT_EQ(log.requests.size(), expected.size());
    EXPECT_EQ(log.counts[0].late, late);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(log.requests[i].line, expected[i].line) << "request " << i << ", " << threads;
    }
  }
}

// An hour of horizon would hold all of it.
TEST(LogOrder, HoldsNoMoreThanItMayWhateverTheHorizon) {
  std::mt19937 random(9);
  std::string text;
  for (int i = 0; i < 30'000; ++i) {
    const int disorder = random() % 100 == 0 ? static_cast<int>(random() % 2'000) : 0;
    text += Line(std::max(0, i / 10 - disorder), "/" + std::string(80, 'x'));
  }
  LogSettings settings;
  settings.horizon = std::chrono::hours(1);
  EXPECT_EQ(ReadText(text, settings).counts[0].late, 0U);
  settings.most_held = 3'000;
  const WholeLog log = ReadText(text, settings);
  EXPECT_GT(log.counts[0].late, 10U);
  EXPECT_LT(log.counts[0].late, 300U);
  EXPECT_EQ(log.counts[0].lines, log.counts[0].requests + log.counts[0].late);
  ASSERT_EQ(log.requests.size(), log.counts[0].requests);
  EXPECT_TRUE(std::ranges::is_sorted(log.requests, {}, &KeptRecord::time));
}

// In an engine time stands still then: every decision after that would be wrong.
TEST(LogOrder, LeavesOutWhatIsMoreThanFiveYearsAfterTheFirst) {
  std::string text = "time,ip\n0,192.0.2.1\n158112000,192.0.2.1\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(1'767'323'045 + i) + ",192.0.2.2\n";
  const WholeLog log = ReadText(text);
  EXPECT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.counts[0].requests, 2U);
  EXPECT_EQ(log.counts[0].unparsed, 1000U);
  ASSERT_EQ(log.counts[0].examples.size(), 1U);
  EXPECT_EQ(log.counts[0].examples[0].line, 4U);
  EXPECT_EQ(log.counts[0].examples[0].text, "1767323045,192.0.2.2");
  EXPECT_EQ(log.counts[0].examples[0].why, "its time is more than five years after the first");
}

TEST_F(LogFiles, AreMergedByTimeAndThenByTheirOrder) {
  const std::string even = Write("even", Line(0, "/e0") + Line(2, "/e2") + Line(4, "/e4"));
  const std::string odd = Write("odd", Line(0, "/o0") + Line(1, "/o1") + Line(3, "/o3"));
  const std::string later = Write("later", Line(500, "/l"));
  const WholeLog log = ReadLog({.files = {later, odd, even}});
  EXPECT_EQ(PathsOf(log),
            (std::vector<std::string>{"/o0", "/e0", "/o1", "/e2", "/o3", "/e4", "/l"}));
  EXPECT_EQ(log.requests[0].file, 1U);
  EXPECT_EQ(log.requests[6].file, 0U);
  EXPECT_EQ(log.counts[1].file, odd);
  EXPECT_EQ(log.counts[1].requests, 3U);
}

TEST_F(LogFiles, MayBeOfDifferentFormats) {
  const std::string csv = Write("a.csv", "time,ip\n2026-01-02T10:00:01Z,198.51.100.1\n");
  const std::string combined = Write("b.log", Line(0));
  const WholeLog log = ReadLog({.files = {csv, combined}});
  ASSERT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.requests[0].file, 1U);
  EXPECT_EQ(log.counts[0].format, "csv");
  EXPECT_EQ(log.counts[1].format, "combined");
}

TEST_F(LogFiles, AreReadTheSameHoweverTheyAreCompressed) {
  const std::string text = ManyLines(9'000);
  const WholeLog plain = ReadLog({.files = {Write("a", text)}});
  ASSERT_EQ(plain.requests.size(), 9'000U);
  const std::size_t half = text.size() / 2;  // In the middle of a line.
  const std::string zeros(300, '\0');
  for (const std::string& bytes :
       {Gzip(text), Gzip(text.substr(0, half)) + Gzip(text.substr(half)), Gzip(text) + zeros,
        Zstd(text), Zstd(text.substr(0, half)) + Zstd(text.substr(half))}) {
    const WholeLog log = ReadLog({.files = {Write("b", bytes)}});
    EXPECT_EQ(log.counts[0].cut_short, "");
    EXPECT_TRUE(log.requests == plain.requests);
    EXPECT_TRUE(ReadText(bytes).requests == plain.requests);
  }
}

TEST_F(LogFiles, ThatAreCutShortAreReadUpToThere) {
  const std::string text = ManyLines(9'000);
  for (const bool gzip : {true, false}) {
    const std::string whole = gzip ? Gzip(text) : Zstd(text);
    const WholeLog log = ReadLog({.files = {Write("a", whole.substr(0, whole.size() * 2 / 3))}});
    ASSERT_EQ(log.error, "");
    EXPECT_GT(log.requests.size(), 2'000U);
    EXPECT_LT(log.requests.size(), 9'000U);
    EXPECT_NE(log.counts[0].cut_short.find("ends in the middle"), std::string::npos);
    // The line it was cut in is no request, but it is counted.
    EXPECT_LE(log.counts[0].unparsed, 1U);
    EXPECT_EQ(log.counts[0].lines, log.counts[0].requests + log.counts[0].unparsed);
  }
}

TEST_F(LogFiles, ThatAreDamagedAreReadUpToThere) {
  const std::string text = ManyLines(9'000);
  std::string bytes = Gzip(text);
  for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 64; ++i) bytes[i] = '\x5a';
  WholeLog log = ReadLog({.files = {Write("a", bytes)}});
  EXPECT_GT(log.requests.size(), 1'000U);
  EXPECT_NE(log.counts[0].cut_short.find("damaged"), std::string::npos);
  bytes = Gzip(text);
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);  // Its checksum.
  log = ReadLog({.files = {Write("b", bytes)}});
  EXPECT_EQ(log.counts[0].requests, 9'000U);
  EXPECT_NE(log.counts[0].cut_short.find("damaged"), std::string::npos);
  log = ReadLog({.files = {Write("c", Gzip(text) + "something else")}});
  EXPECT_EQ(log.requests.size(), 9'000U);
  EXPECT_NE(log.counts[0].cut_short.find("something else"), std::string::npos);
}

TEST_F(LogFiles, ThatCannotBeOpenedAreNamed) {
  const std::string missing = (folder_ / "missing.log").string();
  EXPECT_EQ(ReadLog({.files = {missing}}).error, missing + ": there is no such file");
  EXPECT_EQ(ReadLog({.files = {folder_.string()}}).error,
            folder_.string() + ": it is a folder; name the files in it");
  EXPECT_EQ(ReadLog({.files = {"-", "-"}}).error, "standard input can be read only once");
}

TEST(LogLines, ThatAreRubbishAreCountedWithExamplesThatCanBeShown) {
  std::string junk("\x01\x02 \0 [\x1b]0;title\x07 \xff", 18);
  const WholeLog log = ReadText(Line(0) + junk + "\n" + Line(1) + "words\n\n" + Line(2));
  EXPECT_EQ(log.requests.size(), 3U);
  EXPECT_EQ(log.counts[0].unparsed, 2U);
  EXPECT_EQ(log.counts[0].blank, 1U);
  EXPECT_EQ(log.counts[0].lines, 6U);
  ASSERT_EQ(log.counts[0].examples.size(), 2U);
  const LogCounts::Example& example = log.counts[0].examples[0];
  EXPECT_EQ(example.line, 2U);
  EXPECT_TRUE(std::ranges::all_of(example.text, [](char c) { return c >= ' ' && c <= '~'; }));
  EXPECT_NE(example.text.find("\\x1b"), std::string::npos);
}

TEST(LogLines, OfWhichOnlyTheFirstFewAreShown) {
  std::string text = Line(0);
  for (int i = 0; i < 100; ++i) text += "nonsense\n";
  const WholeLog log = ReadText(text);
  EXPECT_EQ(log.counts[0].unparsed, 100U);
  EXPECT_EQ(log.counts[0].examples.size(), 5U);
}

TEST(LogLines, ThatAreTooLongAreSkippedToTheirEnd) {
  const std::string just(65'536 - Line(0, "").size() + 1, 'x');
  for (const std::size_t size : {std::size_t{65'537}, std::size_t{200'000}, std::size_t{262'144},
                                 std::size_t{1'000'000}, std::size_t{5'000'000}}) {
    const std::string text = Line(0) + Line(1, just) + std::string(size, 'y') + "\n" +
                             Line(2, "/z") + std::string(size, 'y');
    const WholeLog log = ReadText(text);
    ASSERT_EQ(log.requests.size(), 3U) << size;
    EXPECT_EQ(log.requests[1].path.size(), just.size());
    EXPECT_EQ(log.requests[2].line, 4U);
    EXPECT_EQ(log.requests[2].path, "/z");
    EXPECT_EQ(log.counts[0].too_long, 2U);
    EXPECT_EQ(log.counts[0].lines, 5U);
    EXPECT_EQ(log.counts[0].examples[0].line, 3U);
  }
}

TEST(LogLines, EndAtTheEndOfTheFile) {
  std::string text = Line(0) + Line(1, "/last");
  text.pop_back();
  EXPECT_EQ(PathsOf(ReadText(text)), (std::vector<std::string>{"/", "/last"}));
}

TEST(LogLines, AreCountedOverManyBlocks) {
  const WholeLog log = ReadText(ManyLines(30'000));
  ASSERT_EQ(log.requests.size(), 30'000U);
  for (std::size_t i = 0; i < log.requests.size(); ++i) {
    ASSERT_EQ(log.requests[i].line, i + 1);
    ASSERT_EQ(log.requests[i].path, "/item/" + std::to_string(i * 7919));
  }
}

TEST(LogFormats, AreFoundAmongRubbish) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += "\x80\x81 rubbish\n";
  const WholeLog log = ReadText(text + Line(0));
  EXPECT_EQ(log.counts[0].format, "combined");
  EXPECT_EQ(log.counts[0].unparsed, 150U);
}

// Looking for the format must not end where the first block does.
TEST(LogFormats, AreFoundBehindALineOfAMegabyteAndBehindManyLinesOfRubbish) {
  const WholeLog after_long = ReadText(std::string(1'000'000, 'x') + "\n" + ManyLines(50));
  EXPECT_EQ(after_long.error, "");
  ASSERT_EQ(after_long.requests.size(), 50U);
  EXPECT_EQ(after_long.requests[0].line, 2U);
  EXPECT_EQ(after_long.counts[0].too_long, 1U);

  std::string rubbish;
  for (int i = 0; i < 20'000; ++i) rubbish += "this is no log whatever it is\n";
  const WholeLog after_rubbish = ReadText(rubbish + ManyLines(50));
  EXPECT_EQ(after_rubbish.error, "");
  ASSERT_EQ(after_rubbish.requests.size(), 50U);
  EXPECT_EQ(after_rubbish.counts[0].unparsed, 20'000U);
}

TEST(LogFormats, FindAHeadingBehindALineThatIsTooLong) {
  const std::string rows = "time,ip\n1767323045,192.0.2.1\n1767323046,192.0.2.2\n";
  for (const std::size_t bytes : {70'000U, 1'000'000U}) {
    for (const char* const format : {"auto", "csv"}) {
      LogSettings settings;
      settings.format = format;
      const WholeLog log = ReadText(std::string(bytes, 'x') + "\n" + rows, settings);
      ASSERT_EQ(log.requests.size(), 2U) << log.error;
      EXPECT_EQ(log.requests[1].ip, "192.0.2.2");
      EXPECT_EQ(log.counts[0].too_long, 1U);
      EXPECT_EQ(log.counts[0].blank, 1U);
      EXPECT_EQ(log.counts[0].unparsed, 0U);
    }
  }
}

TEST(LogFormats, ThatLackAColumnThatWasNamedSayWhichTheyHave) {
  LogSettings settings;
  settings.columns = {{"user", "account"}};
  const WholeLog log = ReadText(ManyLines(3), settings);
  EXPECT_NE(log.error.find("--column user=account: the combined format has no such column"),
            std::string::npos)
      << log.error;
}

TEST(LogFormats, ThatAreUnknownAreAnError) {
  const std::string error = ReadText("dear diary\nnothing happened\n").error;
  EXPECT_NE(error.find("standard input: nothing in it looks like a log"), std::string::npos);
  EXPECT_NE(error.find("\"dear diary\""), std::string::npos);
  EXPECT_NE(error.find("--format"), std::string::npos);
  LogSettings settings;
  settings.format = "xml";
  EXPECT_NE(ReadText(Line(0), settings).error.find("--format xml"), std::string::npos);
}

TEST(LogFormats, WithoutATimeSayWhichColumnsThereAre) {
  std::string error = ReadText("{\"when\":1767323045,\"who\":{\"ip\":\"1.2.3.4\"}}\n").error;
  EXPECT_NE(error.find("no column says the time; there are when, who.ip"), std::string::npos)
      << error;
  EXPECT_NE(error.find("--column time=COLUMN"), std::string::npos);
  error = ReadText("when,ip\n1767323045,1.2.3.4\n").error;
  EXPECT_NE(error.find("no column says the time; there are when, ip"), std::string::npos) << error;
  LogSettings settings;
  settings.columns = {{"time", "when"}};
  EXPECT_EQ(ReadText("when,ip\n1767323045,1.2.3.4\n", settings).requests.size(), 1U);
  settings.columns = {{"time", "then"}};
  error = ReadText("when,ip\n1767323045,1.2.3.4\n", settings).error;
  EXPECT_NE(error.find("there is no such column; there are when, ip"), std::string::npos) << error;
}

TEST(LogFormats, WithoutATimeDoNotWriteToTheTerminalWhatTheirColumnsAreCalled) {
  LogSettings settings;
  settings.format = "csv";
  for (const WholeLog& log : {ReadText("ip,\x1b[31mred\n192.0.2.1,2\n", settings),
                              ReadText(R"({"ip":"192.0.2.1","\u001b[31mred":2})")}) {
    EXPECT_NE(log.error.find("there are ip, \\x1b[31mred: name it"), std::string::npos)
        << log.error;
  }
}

TEST(LogFormats, AreNotGuessedIfTheyAreNamed) {
  LogSettings settings;
  settings.format = "jsonl";
  const WholeLog log = ReadText(Line(0) + "{\"time\":1767323045}\n", settings);
  EXPECT_EQ(log.requests.size(), 1U);
  EXPECT_EQ(log.counts[0].unparsed, 1U);
}

TEST(LogSettings, ThatNameAFieldThatThereIsNotAreAnError) {
  LogSettings settings;
  settings.columns = {{"colour", "c"}};
  EXPECT_NE(ReadText(Line(0), settings).error.find("there is no \"colour\""), std::string::npos)
      << ReadText(Line(0), settings).error;
}

TEST(EmptyLogs, AreNoError) {
  const WholeLog log = ReadText("");
  EXPECT_EQ(log.error, "");
  EXPECT_EQ(log.requests.size(), 0U);
  EXPECT_EQ(log.counts[0].lines, 0U);
  EXPECT_EQ(ReadText("\n \n").counts[0].blank, 2U);
  EXPECT_EQ(ReadText("time,ip\n").counts[0].blank, 1U);
}

TEST(LogReader, CanBeLeftInTheMiddle) {
  std::istringstream in(ManyLines(30'000));
  const LogSettings settings{.files = {"-"}};
  auto reader = LogReader::Open(settings, in);
  ASSERT_TRUE(reader.has_value());
  EXPECT_FALSE((*reader)->Next().empty());
}

}  // namespace
}  // namespace weir::lab
