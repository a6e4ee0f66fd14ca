// Takes HTTP/1 requests from bytes as they come. Nothing is copied: what it says of a request are
// views of those bytes, in which a chunked body is put together where it stands.
//
//   switch (reader.Read(input, bounds, head)) {
//     case kComplete:   use head and reader.body(), then drop reader.size() bytes
//     case kIncomplete: call again with the same bytes and more behind them
//     case kFault:      answer reader.fault() and close: nobody knows where the next one begins
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http/chunked_body.h"
#include "net/http/request_head.h"

namespace weir {

class HttpRequestReader {
 public:
  struct Bounds {
    std::size_t header;  // Bytes of a head, and of what stands around the chunks of a body.
    std::size_t body;    // Bytes of a body.
  };
  enum class Outcome : std::uint8_t { kIncomplete, kComplete, kFault };

  // The time taken for a request goes by its size, in however many pieces it comes. `head` is
  // filled when the request is complete. It need not be the same from call to call: being large, it
  // is better shared by many readers.
  Outcome Read(std::span<char> input, const Bounds& bounds, HttpHead& head) noexcept;

  // Of the request that is complete, until the next call; its bytes must stay.
  std::span<char> body() const noexcept { return body_; }
  std::size_t size() const noexcept { return size_; }

  const HttpFault& fault() const noexcept { return fault_; }

  // How many bytes the request that is incomplete will have, if that is known; else 0.
  std::size_t wants() const noexcept { return wants_; }
  // Whether the client waits to be told to send the body. True once for a request.
  bool TakeContinue() noexcept;

 private:
  enum class Part : std::uint8_t { kHead, kBody, kChunks };

  Outcome ReadHead(std::span<char> input, const Bounds& bounds, HttpHead& head) noexcept;
  bool IsWorthParsing(std::string_view head) noexcept;
  Outcome BeginBody(std::span<char> input, const Bounds& bounds, const HttpHead& head) noexcept;
  Outcome ReadBody(std::span<char> input) noexcept;
  Outcome ReadChunks(std::span<char> input, const Bounds& bounds) noexcept;
  Outcome Complete(std::span<char> input, std::size_t body_size, std::size_t size) noexcept;
  Outcome Fault(const HttpFault& fault) noexcept {
    fault_ = fault;
    return Outcome::kFault;
  }

  Part part_ = Part::kHead;
  bool continue_is_due_ = false;
  std::size_t searched_ = 0;  // So many bytes of a head were looked through for its end,
  std::size_t parsed_ = 0;    // and so many were there when it was parsed in vain.
  std::size_t head_size_ = 0;
  std::size_t wants_ = 0;
  std::size_t size_ = 0;
  std::span<char> body_{};
  ChunkedBody chunks_{};
  HttpFault fault_{};
};

}  // namespace weir
