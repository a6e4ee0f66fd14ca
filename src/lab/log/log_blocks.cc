#include "lab/log/log_blocks.h"

#include <cstring>

#include "lab/log/line_parser.h"

namespace weir::lab {
namespace {

constexpr std::size_t kShownBytes = 200;

}  // namespace

BlockReader::BlockReader(std::unique_ptr<LogInput> input, std::size_t block_bytes)
    : input_(std::move(input)),
      block_bytes_(block_bytes),
      carried_(std::make_unique_for_overwrite<char[]>(block_bytes)) {}

void BlockReader::Read(TextBlock& block) {
  if (!block.room) {
    block.room = std::make_unique_for_overwrite<char[]>(block_bytes_ + kLinePadding);
    std::memset(block.room.get() + block_bytes_, 0, kLinePadding);
  }
  block.number = next_number_++;
  block.ends_too_long = block.ends_in_pieces = false;
  block.too_long_begins.clear();
  char* const room = block.room.get();
  std::memcpy(room, carried_.get(), carried_bytes_);
  std::size_t size = carried_bytes_;
  carried_bytes_ = 0;
  if (!input_ended_) {
    const std::size_t more = input_->Read({room + size, block_bytes_ - size});
    input_ended_ = more < block_bytes_ - size;
    size += more;
  }
  const void* const newline = ::memrchr(room, '\n', size);
  const std::size_t lines_end =
      newline == nullptr ? 0
                         : static_cast<std::size_t>(static_cast<const char*>(newline) - room) + 1;
  if (input_ended_) {
    block.size = size;
    block.ends_in_pieces = lines_end < size && !input_->cut_short().empty();
  } else if (size - lines_end > kMaxLineBytes) {
    block.size = lines_end;
    block.ends_too_long = true;
    block.too_long_begins.assign(room + lines_end, kShownBytes);
    SkipLine();
  } else {
    block.size = lines_end;
    carried_bytes_ = size - lines_end;
    std::memcpy(carried_.get(), room + lines_end, carried_bytes_);
  }
  block.is_last = input_ended_ && carried_bytes_ == 0;
  block.input_bytes = input_->bytes_read() - told_bytes_;
  told_bytes_ = input_->bytes_read();
}

void BlockReader::SkipLine() {
  constexpr std::size_t kPieceBytes = kMaxLineBytes;  // What is left of one is carried over.
  while (!input_ended_) {
    const std::size_t got = input_->Read({carried_.get(), kPieceBytes});
    input_ended_ = got < kPieceBytes;
    const void* const newline = std::memchr(carried_.get(), '\n', got);
    if (newline == nullptr) continue;
    const std::size_t from =
        static_cast<std::size_t>(static_cast<const char*>(newline) - carried_.get()) + 1;
    carried_bytes_ = got - from;
    std::memmove(carried_.get(), carried_.get() + from, carried_bytes_);
    return;
  }
}

}  // namespace weir::lab
