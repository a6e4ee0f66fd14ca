// Reads files block by block, and parses the blocks on all cores. The blocks of a file come out in
// its order, whoever was done first; how many are under way is bounded.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lab/log/log_blocks.h"
#include "lab/log/log_format.h"
#include "lab/log/parsed_block.h"

namespace weir::lab {

class LogPipeline {
 public:
  // One file, with its first blocks, which were looked at to find the format.
  struct File {
    std::unique_ptr<BlockReader> reader{};
    FormatFound format{};
    std::deque<std::unique_ptr<ParsedBlock>> first{};
  };
  LogPipeline(std::vector<File> files, Duration horizon, int threads);
  LogPipeline(const LogPipeline&) = delete;
  LogPipeline& operator=(const LogPipeline&) = delete;
  ~LogPipeline();

  // The next block of a file; none after its last. From one thread.
  std::unique_ptr<ParsedBlock> Take(std::size_t number);
  // One that is not needed any more, so that its room is used again.
  void GiveBack(std::unique_ptr<ParsedBlock> block);

  // Once its last block was taken.
  const std::string& cut_short(std::size_t file) const {
    return files_[file].source.reader->input().cut_short();
  }

 private:
  struct State {
    File source{};
    std::map<std::uint64_t, std::unique_ptr<ParsedBlock>> done{};  // By number.
    std::uint64_t next = 0;                                        // To be taken.
    std::size_t under_way = 0;                                     // Read, and not taken yet.
    bool is_being_read = false;
    bool ended = false;  // Its last block was read.
    bool all_taken = false;
  };

  void Work();
  // One that can be read on now; kNone if there is none.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t FileToRead() const;
  bool MayRead(std::size_t file) const;

  const Duration horizon_;
  const std::size_t ahead_;  // How many blocks of the file that is waited for may be under way.
  std::mutex mutex_;
  std::condition_variable may_read_;
  std::condition_variable is_done_;
  std::vector<State> files_;
  std::vector<std::unique_ptr<ParsedBlock>> spare_;
  std::size_t wanted_ = 0;  // The file that is read by whoever takes.
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weir::lab
