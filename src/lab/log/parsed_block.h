// A block of lines and the requests in it, in the order of their time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/log/line_parser.h"
#include "lab/log/log_blocks.h"
#include "lab/log/log_reader.h"

namespace weir::lab {

// Of those that could not be used, so many of a file are kept.
inline constexpr std::size_t kMostExamples = 5;
inline constexpr const char* kWhyLate = "its time is too long before that of a line above it";
inline constexpr const char* kWhyBeyond = "its time is more than five years after the first";

struct ParsedBlock {
  TextBlock text{};
  Texts texts{};
  // By time, then by line. Lines count from 1 within the block.
  std::vector<LogRecord> records{};
  LogCounts counts{};  // Of this block; `late` are those that are so within it.
  WallTime newest{};   // Of all its lines, if there are records.
  std::uint32_t file = 0;

  // How many of the records were told already.
  std::size_t told = 0;
  std::uint64_t lines_before = 0;  // In its file.

  std::size_t bytes() const noexcept {
    return text.size + texts.bytes() + records.capacity() * sizeof(LogRecord);
  }
};

struct ParseOptions {
  std::size_t heading_lines = 0;    // Of the block
  std::uint64_t heading_block = 0;  // of this number; what is before it is no heading.
  Duration horizon{};
  std::uint32_t file = 0;
};

// Of block.text, which is set.
void ParseBlock(ParsedBlock& block, LineParser& parser, const ParseOptions& options);

// A line of the block as it can be shown; from 1.
std::string LineOf(const ParsedBlock& block, std::uint64_t line);

}  // namespace weir::lab
