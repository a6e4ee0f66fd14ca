// Decisions are made in the order of time and written in the order of the log. In between they are
// in a file without a name beside the one that is written, 24 bytes for each line of the log, so
// that memory does not depend on how long the log is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/decision.h>
#include <weir/result.h>

namespace weir::lab {

class DecisionFile {
 public:
  // The error names the file that cannot be written.
  static Result<std::unique_ptr<DecisionFile>> Create(const std::string& path,
                                                      std::vector<std::string> logs);
  ~DecisionFile();
  DecisionFile(const DecisionFile&) = delete;
  DecisionFile& operator=(const DecisionFile&) = delete;

  static constexpr std::uint32_t kNoRule = 0xffff'ffff;
  void Add(std::uint32_t log, std::uint64_t line, const Decision& decision, std::uint32_t rule);

  // Writes all of them, one object of JSON a line:
  //   {"line":1,"allowed":true,"rule":"per-ip","remaining":4,"retry_after_ms":0}
  // with "file" in front if there are several logs. An error if the disk would not take it.
  Result<void> Finish(const std::vector<std::string>& rules);

 private:
  struct Entry {
    std::int64_t remaining;
    std::int64_t retry_after_ms;  // -1: never.
    std::uint32_t rule;
    std::uint8_t is_there;
    std::uint8_t allowed;
    std::uint16_t unused;
  };
  static_assert(sizeof(Entry) == 24);
  // The entries of one log: those of the latest lines in memory, the others in a file.
  struct Spill {
    int descriptor = -1;
    std::uint64_t first = 1;  // The line of latest[0].
    std::vector<Entry> latest{};
  };
  static constexpr std::size_t kLatest = 16'384;

  DecisionFile(std::string path, std::vector<std::string> logs, int descriptor);
  void Flush(Spill& spill);
  void Put(int descriptor, const void* bytes, std::size_t size, std::int64_t offset);
  void WriteLog(std::size_t log, const std::vector<std::string>& rules, std::string& text);
  void Write(std::string& text);

  const std::string path_;
  const std::vector<std::string> logs_;
  const int descriptor_;
  std::vector<Spill> spills_;
  std::string error_;
};

}  // namespace weir::lab
