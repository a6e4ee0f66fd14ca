// A request that outlives what it was made from: a waiter keeps one, because the reader of a socket
// has long gone on to the next. All of its texts and lists lie in one block of memory.
#pragma once

#include <cstddef>
#include <memory>

#include <weir/request.h>

namespace weir {

class OwnedRequest {
 public:
  explicit OwnedRequest(const Request& request);

  const Request& view() const noexcept { return view_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> block_;
  Request view_;
};

}  // namespace weir
