#include "policy/file_text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FileText : public testing::Test {
 protected:
  FileText() {
    std::string name = testing::TempDir() + "weir-file-text-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~FileText() override { std::filesystem::remove_all(folder_); }

  std::string PathOf(const std::string& name) const { return folder_ / name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(PathOf(name), std::ios::binary) << text;
    return PathOf(name);
  }

  static Error ErrorOf(const std::string& path, std::size_t cap = 100) {
    const Result<std::string> text = ReadWholeFile(path, cap);
    EXPECT_FALSE(text.has_value()) << path;
    return text.has_value() ? Error{} : text.error();
  }

  std::filesystem::path folder_;
};

TEST_F(FileText, IsAllThatTheFileHolds) {
  const std::string text("a\0b\r\n\xff", 6);
  EXPECT_EQ(ReadWholeFile(Write("a", text), 100).value(), text);
  EXPECT_EQ(ReadWholeFile(Write("b", ""), 100).value(), "");
  const std::string large(1'000'000, 'x');
  EXPECT_EQ(ReadWholeFile(Write("c", large), large.size()).value(), large);
}

TEST_F(FileText, IsReadThroughALink) {
  std::filesystem::create_symlink(Write("a", "text"), PathOf("link"));
  EXPECT_EQ(ReadWholeFile(PathOf("link"), 100).value(), "text");
}

TEST_F(FileText, MayHaveAsManyBytesAsTheCapAndNoMore) {
  const std::string path = Write("a", "12345");
  EXPECT_EQ(ReadWholeFile(path, 5).value(), "12345");
  EXPECT_EQ(ErrorOf(path, 4).code, ErrorCode::kTooLarge);
  EXPECT_THAT(ErrorOf(path, 4).message, AllOf(HasSubstr(path), HasSubstr("4 bytes")));
  EXPECT_EQ(ErrorOf(path, 0).code, ErrorCode::kTooLarge);
}

TEST_F(FileText, IsReadToItsEndEvenIfItSaysItHasNone) {
  const Result<std::string> text = ReadWholeFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("Pid:"));
  EXPECT_EQ(ErrorOf("/proc/self/status", 10).code, ErrorCode::kTooLarge);
}

TEST_F(FileText, ThatIsNotThereIsNotFound) {
  const Error error = ErrorOf(PathOf("nothing"));
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, AllOf(HasSubstr(PathOf("nothing")), HasSubstr("No such file")));
  std::filesystem::create_symlink(PathOf("nothing"), PathOf("dangling"));
  EXPECT_EQ(ErrorOf(PathOf("dangling")).code, ErrorCode::kNotFound);
}

TEST_F(FileText, IsNotADirectory) {
  const Error error = ErrorOf(folder_);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(HasSubstr(folder_), HasSubstr("directory")));
}

TEST_F(FileText, IsNotAFifoAndDoesNotWaitForOne) {
  ASSERT_EQ(mkfifo(PathOf("fifo").c_str(), 0600), 0);
  const Error error = ErrorOf(PathOf("fifo"));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("not a regular file"));
  EXPECT_EQ(ErrorOf("/dev/null").code, ErrorCode::kInvalidArgument);
}

TEST_F(FileText, HasAnErrorForNamesThatAreNone) {
  EXPECT_EQ(ErrorOf("").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(Write("a", "x") + std::string("\0b", 2)).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(PathOf(std::string(300, 'x'))).code, ErrorCode::kInvalidArgument);
}

TEST_F(FileText, ThatMayNotBeReadIsForbidden) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = Write("a", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(ErrorOf(path).code, ErrorCode::kForbidden);
}

}  // namespace
}  // namespace weir
