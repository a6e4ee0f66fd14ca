// A log in blocks of whole lines, so that several threads can parse it. What is held of a line that
// is too long is bounded, however long it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lab/log/log_input.h"

namespace weir::lab {

struct TextBlock {
  std::unique_ptr<char[]> room{};  // With kLinePadding bytes more than it may have.
  std::size_t size = 0;            // Of the text, which ends with a newline or with the file.
  std::uint64_t number = 0;        // From 0.
  std::uint64_t input_bytes = 0;   // How much of the file it took.
  bool is_last = false;
  // Behind the text was a line that is too long, and it is over: this is how it begins.
  bool ends_too_long = false;
  std::string too_long_begins{};
  // The last line is not whole, because the file was cut short.
  bool ends_in_pieces = false;

  std::string_view text() const noexcept { return {room.get(), size}; }
};

class BlockReader {
 public:
  // Blocks of up to so many bytes, at least four times the longest line.
  BlockReader(std::unique_ptr<LogInput> input, std::size_t block_bytes);

  // The next block, into the room that `block` has, if it has any. After the one that is the last
  // there is none.
  void Read(TextBlock& block);

  const LogInput& input() const noexcept { return *input_; }

 private:
  // Reads on to the end of a line that is too long; what is behind that is carried over.
  void SkipLine();

  std::unique_ptr<LogInput> input_;
  const std::size_t block_bytes_;
  std::unique_ptr<char[]> carried_;  // The beginning of a line whose end was not read yet.
  std::size_t carried_bytes_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t told_bytes_ = 0;
  bool input_ended_ = false;
};

}  // namespace weir::lab
