#include "net/http/request_reader.h"

#include <algorithm>
#include <cstring>

namespace weir {

HttpRequestReader::Outcome HttpRequestReader::Read(std::span<char> input,
                                                   const Bounds& bounds) noexcept {
  head_is_fresh_ = false;
  switch (part_) {
    case Part::kHead:
      return ReadHead(input, bounds);
    case Part::kBody:
      return ReadBody(input);
    default:
      return ReadChunks(input, bounds);
  }
}

HttpRequestReader::Outcome HttpRequestReader::ReadHead(std::span<char> input,
                                                       const Bounds& bounds) noexcept {
  using Parsed = HttpHeadParser::Outcome;
  const std::string_view bytes(input.data(), std::min(input.size(), bounds.header));
  const bool all = bytes.size() == bounds.header;
  if (parsed_ != 0 && !all && !IsWorthParsing(bytes)) return Outcome::kIncomplete;
  switch (parser_.Parse(bytes, head_)) {
    case Parsed::kFault:
      return Fault(parser_.fault());
    case Parsed::kIncomplete:
      if (all) return Fault({.status = 431, .message = "the header is too large"});
      parsed_ = bytes.size();
      return Outcome::kIncomplete;
    case Parsed::kComplete:
      break;
  }
  head_is_fresh_ = true;
  parsed_ = searched_ = 0;
  return BeginBody(input, bounds);
}

// A head that could not be parsed for want of bytes is parsed again when its end is there, when
// something is wrong with a line, or when there is twice as much: not for every byte that comes.
bool HttpRequestReader::IsWorthParsing(std::string_view head) noexcept {
  while (searched_ < head.size()) {
    const void* const found = std::memchr(head.data() + searched_, '\n', head.size() - searched_);
    if (found == nullptr) break;
    const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - head.data());
    searched_ = at + 1;
    const bool proper = at >= 1 && head[at - 1] == '\r';
    const bool empty = at >= 3 && head[at - 2] == '\n';
    if (!proper || empty) return true;
  }
  searched_ = head.size();
  return head.size() >= 2 * parsed_;
}

HttpRequestReader::Outcome HttpRequestReader::BeginBody(std::span<char> input,
                                                        const Bounds& bounds) noexcept {
  if (head_.length > bounds.body) {
    return Fault({.status = 413, .message = "the body is too large"});
  }
  continue_is_due_ =
      head_.expects_continue && (head_.chunked || head_.length > 0) && input.size() == head_.size;
  if (head_.chunked) {
    part_ = Part::kChunks;
    chunks_ = {};
    return ReadChunks(input, bounds);
  }
  part_ = Part::kBody;
  wants_ = head_.size + static_cast<std::size_t>(head_.length);
  return ReadBody(input);
}

HttpRequestReader::Outcome HttpRequestReader::ReadBody(std::span<char> input) noexcept {
  if (input.size() < wants_) return Outcome::kIncomplete;
  return Complete(input, static_cast<std::size_t>(head_.length), wants_);
}

HttpRequestReader::Outcome HttpRequestReader::ReadChunks(std::span<char> input,
                                                         const Bounds& bounds) noexcept {
  const std::size_t begin = head_.size;
  switch (chunks_.Read(input.subspan(begin), {.body = bounds.body, .overhead = bounds.header})) {
    case ChunkedBody::Outcome::kFault:
      return Fault(chunks_.fault());
    case ChunkedBody::Outcome::kIncomplete:
      return Outcome::kIncomplete;
    case ChunkedBody::Outcome::kComplete:
      break;
  }
  return Complete(input, chunks_.body_size(), begin + chunks_.raw_size());
}

HttpRequestReader::Outcome HttpRequestReader::Complete(std::span<char> input, std::size_t body_size,
                                                       std::size_t size) noexcept {
  const std::size_t begin = head_.size;
  // The bytes may stand elsewhere by now.
  if (!head_is_fresh_) parser_.Parse({input.data(), begin}, head_);
  body_ = input.subspan(begin, body_size);
  size_ = size;
  wants_ = 0;
  part_ = Part::kHead;
  continue_is_due_ = false;
  return Outcome::kComplete;
}

bool HttpRequestReader::TakeContinue() noexcept {
  const bool due = continue_is_due_;
  continue_is_due_ = false;
  return due;
}

}  // namespace weir
