// The answer to CLUSTER SLOTS: for each range of slots its master, then its replicas, which do not
// concern us.
#pragma once

#include <cstdint>
#include <vector>

#include "net/endpoint.h"
#include "net/resp/reply_reader.h"

namespace weir::redis {

struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  Endpoint master{};  // An empty host is the one that was asked. No port: not known.
};

// Reads one answer.
class ClusterSlots {
 public:
  // False if it makes no sense.
  bool Take(const resp::ReplyItem& item);
  const std::vector<SlotRange>& ranges() const noexcept { return ranges_; }

 private:
  bool TakeOfRange(const resp::ReplyItem& item);
  bool TakeOfServer(const resp::ReplyItem& item);

  std::vector<SlotRange> ranges_;
  std::size_t in_range_ = 0;   // Items of this range so far.
  std::size_t in_server_ = 0;  // Of this server.
};

}  // namespace weir::redis
