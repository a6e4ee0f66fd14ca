#include "store/memory/snapshot_stream.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

}  // namespace

SnapshotWriter::SnapshotWriter(const ByteSink& sink) : sink_(sink), buffer_(kBufferBytes) {}

void SnapshotWriter::PutBytes(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (used_ == buffer_.size()) Flush();
    const std::size_t some = std::min(bytes.size(), buffer_.size() - used_);
    std::ranges::copy(bytes.first(some), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += some;
    bytes = bytes.subspan(some);
  }
}

void SnapshotWriter::PutText(std::string_view text) {
  Put(static_cast<std::uint32_t>(text.size()));
  PutBytes(std::as_bytes(std::span(text)));
}

void SnapshotWriter::Flush() {
  const std::span full = std::span(buffer_).first(std::exchange(used_, 0));
  if (error_) return;
  checksum_.Add(full);
  if (Result<void> taken = sink_(full); !taken) error_ = std::move(taken.error());
}

Result<void> SnapshotWriter::Finish() {
  Flush();
  Put(checksum_.Value());
  Flush();
  if (error_) return std::unexpected(*error_);
  return {};
}

SnapshotReader::SnapshotReader(const ByteSource& source) : source_(source), buffer_(kBufferBytes) {}

bool SnapshotReader::Fill() {
  checksum_.Add(std::span(buffer_).first(at_));
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= std::exchange(at_, 0);
  Result<std::size_t> read = source_(std::span(buffer_).subspan(end_));
  if (!read) {
    if (!error_) error_ = std::move(read.error());
    return false;
  }
  end_ += std::min(*read, buffer_.size() - end_);
  return *read > 0;
}

void SnapshotReader::GetBytes(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    if (at_ == end_ && (error_ || !Fill())) {
      Refuse("it ends too early");
      std::ranges::fill(bytes, std::byte{0});
      return;
    }
    const std::size_t some = std::min(bytes.size(), end_ - at_);
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(at_), some, bytes.begin());
    at_ += some;
    bytes = bytes.subspan(some);
  }
}

std::string SnapshotReader::GetText(std::size_t most) {
  const auto size = Get<std::uint32_t>();
  if (size > most) {
    Refuse("a text of " + std::to_string(size) + " bytes is too long");
    return "";
  }
  std::string text(size, '\0');
  GetBytes(std::as_writable_bytes(std::span(text)));
  return text;
}

// What comes next makes no sense any more, so that none of it is looked at.
void SnapshotReader::Refuse(std::string why) {
  if (error_) return;
  error_ = Error{ErrorCode::kInvalidArgument, std::move(why)};
  at_ = end_;
}

Result<void> SnapshotReader::Finish() {
  checksum_.Add(std::span(buffer_).first(at_));
  const std::uint64_t expected = checksum_.Value();
  end_ -= at_;
  std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(std::exchange(at_, 0)), end_,
              buffer_.begin());
  const auto written = Get<std::uint64_t>();
  if (!error_ && written != expected) Refuse("its checksum is wrong");
  if (!error_ && (at_ != end_ || Fill())) Refuse("something follows its end");
  if (error_) return std::unexpected(*error_);
  return {};
}

}  // namespace weir
