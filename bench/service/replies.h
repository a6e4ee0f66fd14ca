// Counts replies as cheaply as it can be done, so that the load generator is not what is measured.
//
// All replies to one kind of request have the same shape. The first is read carefully; after that
// RESP replies are counted by their line ends, and by a character that occurs equally often in
// each of them, which an error reply does not have. HTTP replies are taken apart by the length of
// their bodies. Now and then everything is read carefully again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "requests.h"

namespace weir::bench {

// The length of the first reply in `text`; nothing if it is not all there.
std::optional<std::size_t> RespReplyBytes(std::string_view text);
std::optional<std::size_t> HttpReplyBytes(std::string_view text);

// What the replies to one kind of request look like.
class ReplyShape {
 public:
  // From a reply that is whole. Ends the process if it is not what the request asks for.
  ReplyShape(RequestKind kind, std::string_view reply);

  bool http() const noexcept { return IsHttp(kind_); }
  std::size_t lines() const noexcept { return lines_; }
  char marker() const noexcept { return marker_; }
  std::size_t markers() const noexcept { return markers_; }

  // Whether this is what the request asks for: let through, and no error.
  bool Fits(std::string_view reply) const noexcept;
  // Whether `text` holds `count` such replies and nothing else.
  bool FitsAll(std::string_view text, std::size_t count) const noexcept;

 private:
  RequestKind kind_;
  std::size_t lines_ = 0;
  std::size_t markers_ = 0;
  char marker_ = 0;
};

// The replies of one connection.
class ReplyCounter {
 public:
  // How many more are complete with these bytes. Ends the process at an error reply.
  std::size_t Add(const ReplyShape& shape, std::string_view bytes);

 private:
  bool IsBetweenReplies() const noexcept { return lines_ == 0 && markers_ == 0 && rest_.empty(); }
  std::size_t AddResp(const ReplyShape& shape, std::string_view bytes);
  std::size_t AddHttp(std::string_view bytes);

  std::size_t lines_ = 0;    // Of replies that are not complete yet.
  std::size_t markers_ = 0;  // Likewise.
  std::size_t batches_ = 0;
  std::string rest_;  // The beginning of an HTTP reply.
};

}  // namespace weir::bench
