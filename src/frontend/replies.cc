#include "frontend/replies.h"

#include <algorithm>

namespace weir {

Replies::Ticket Replies::Hold() {
  held_.push_back({.number = ++last_});
  ++unfilled_;
  return Ticket{last_};
}

void Replies::Fill(Ticket ticket, std::string_view reply) {
  // Numbers ascend without gaps, so the place is found by counting.
  const std::uint64_t number = static_cast<std::uint64_t>(ticket);
  if (held_.empty() || number < held_.front().number) return;
  const std::uint64_t index = number - held_.front().number;
  if (index >= held_.size() || held_[index].filled) return;
  Held& place = held_[index];
  place.filled = true;
  --unfilled_;
  place.reply.Append(reply);
  while (!held_.empty() && held_.front().filled) {
    ready_.Append(held_.front().reply.view());
    ready_.Append(held_.front().behind.view());
    held_.pop_front();
  }
}

std::size_t Replies::HeldBytes() const noexcept {
  std::size_t bytes = 0;
  for (const Held& place : held_) bytes += place.reply.size() + place.behind.size();
  return bytes;
}

}  // namespace weir
