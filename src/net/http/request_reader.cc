#include "net/http/request_reader.h"

#include <algorithm>
#include <cstring>

namespace weir {

HttpRequestReader::Outcome HttpRequestReader::Read(std::span<char> input, const Bounds& bounds,
                                                   HttpHead& head) noexcept {
  if (part_ == Part::kHead) return ReadHead(input, bounds, head);
  const Outcome outcome = part_ == Part::kBody ? ReadBody(input) : ReadChunks(input, bounds);
  // The head was parsed in an earlier call, of bytes that may stand elsewhere by now.
  if (outcome == Outcome::kComplete) HttpHeadParser().Parse({input.data(), head_size_}, head);
  return outcome;
}

HttpRequestReader::Outcome HttpRequestReader::ReadHead(std::span<char> input, const Bounds& bounds,
                                                       HttpHead& head) noexcept {
  using Parsed = HttpHeadParser::Outcome;
  const std::string_view bytes(input.data(), std::min(input.size(), bounds.header));
  const bool all = bytes.size() == bounds.header;
  if (parsed_ != 0 && !all && !IsWorthParsing(bytes)) return Outcome::kIncomplete;
  HttpHeadParser parser;
  switch (parser.Parse(bytes, head)) {
    case Parsed::kFault:
      return Fault(parser.fault());
    case Parsed::kIncomplete:
      if (all) return Fault({.status = 431, .message = "the header is too large"});
      parsed_ = bytes.size();
      return Outcome::kIncomplete;
    case Parsed::kComplete:
      break;
  }
  parsed_ = searched_ = 0;
  return BeginBody(input, bounds, head);
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

HttpRequestReader::Outcome HttpRequestReader::BeginBody(std::span<char> input, const Bounds& bounds,
                                                        const HttpHead& head) noexcept {
  if (head.length > bounds.body) {
    return Fault({.status = 413, .message = "the body is too large"});
  }
  continue_is_due_ =
      head.expects_continue && (head.chunked || head.length > 0) && input.size() == head.size;
  head_size_ = head.size;
  if (head.chunked) {
    part_ = Part::kChunks;
    chunks_ = {};
    return ReadChunks(input, bounds);
  }
  part_ = Part::kBody;
  wants_ = head.size + static_cast<std::size_t>(head.length);
  return ReadBody(input);
}

HttpRequestReader::Outcome HttpRequestReader::ReadBody(std::span<char> input) noexcept {
  if (input.size() < wants_) return Outcome::kIncomplete;
  return Complete(input, wants_ - head_size_, wants_);
}

HttpRequestReader::Outcome HttpRequestReader::ReadChunks(std::span<char> input,
                                                         const Bounds& bounds) noexcept {
  switch (
      chunks_.Read(input.subspan(head_size_), {.body = bounds.body, .overhead = bounds.header})) {
    case ChunkedBody::Outcome::kFault:
      return Fault(chunks_.fault());
    case ChunkedBody::Outcome::kIncomplete:
      return Outcome::kIncomplete;
    case ChunkedBody::Outcome::kComplete:
      break;
  }
  return Complete(input, chunks_.body_size(), head_size_ + chunks_.raw_size());
}

HttpRequestReader::Outcome HttpRequestReader::Complete(std::span<char> input, std::size_t body_size,
                                                       std::size_t size) noexcept {
  body_ = input.subspan(head_size_, body_size);
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
