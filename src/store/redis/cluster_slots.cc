#include "store/redis/cluster_slots.h"

#include "store/redis/slots.h"

namespace weir::redis {
namespace {

using ItemKind = resp::ReplyItem::Kind;

// What a range begins with: its first slot, its last, its master.
constexpr std::size_t kPlaceOfFirst = 1;
constexpr std::size_t kPlaceOfLast = 2;
constexpr std::size_t kPlaceOfMaster = 3;

}  // namespace

bool ClusterSlots::Take(const resp::ReplyItem& item) {
  switch (item.depth) {
    case 0:
      return item.kind == ItemKind::kArray;
    case 1:
      if (item.kind != ItemKind::kArray || item.count < kPlaceOfMaster ||
          ranges_.size() >= kSlots) {
        return false;
      }
      ranges_.emplace_back();
      in_range_ = 0;
      return true;
    case 2:
      return TakeOfRange(item);
    case 3:
      return TakeOfServer(item);
    default:
      return true;  // What else it says about a server.
  }
}

bool ClusterSlots::TakeOfRange(const resp::ReplyItem& item) {
  SlotRange& range = ranges_.back();
  ++in_range_;
  if (in_range_ >= kPlaceOfMaster) {
    in_server_ = 0;
    return item.kind == ItemKind::kArray && item.count >= 2;
  }
  if (item.kind != ItemKind::kInteger || item.integer < 0 || item.integer >= kSlots) return false;
  const auto slot = static_cast<std::uint16_t>(item.integer);
  if (in_range_ == kPlaceOfFirst) range.first = slot;
  if (in_range_ == kPlaceOfLast) range.last = slot;
  return in_range_ != kPlaceOfLast || range.first <= range.last;
}

bool ClusterSlots::TakeOfServer(const resp::ReplyItem& item) {
  ++in_server_;
  if (in_range_ != kPlaceOfMaster || in_server_ > 2) return true;
  Endpoint& master = ranges_.back().master;
  if (in_server_ == 1) {
    if (item.kind != ItemKind::kBulk && item.kind != ItemKind::kNull) return false;
    if (item.text.size() > 255) return false;
    master.host = item.text;
    return true;
  }
  if (item.kind != ItemKind::kInteger || item.integer < 0 || item.integer > 65'535) return false;
  master.port = master.host == "?" ? std::uint16_t{0} : static_cast<std::uint16_t>(item.integer);
  return true;
}

}  // namespace weir::redis
