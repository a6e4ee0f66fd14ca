#include "frontend/replies.h"

namespace weir {

Replies::Ticket Replies::Hold(std::size_t weight) {
  counted_bytes_ = held_bytes();
  held_.push_back({.number = ++last_, .weight = weight});
  weight_ += weight;
  ++unfilled_;
  return Ticket{last_};
}

void Replies::Fill(Ticket ticket, std::string_view reply) {
  // Numbers ascend without gaps, so the place is found by counting.
  const auto number = static_cast<std::uint64_t>(ticket);
  if (held_.empty() || number < held_.front().number) return;
  const std::uint64_t index = number - held_.front().number;
  if (index >= held_.size() || held_[index].filled) return;
  Held& place = held_[index];
  place.filled = true;
  --unfilled_;
  if (index > 0) {
    place.reply.Append(reply);
    counted_bytes_ += reply.size();
    return;
  }
  ready_.Append(reply);  // As mostly: nothing is before it.
  while (!held_.empty() && held_.front().filled) {
    const Held& first = held_.front();
    ready_.Append(first.reply.view());
    ready_.Append(first.behind.view());
    counted_bytes_ -= first.reply.size() + (held_.size() > 1 ? first.behind.size() : 0);
    weight_ -= first.weight;
    held_.pop_front();
  }
}

}  // namespace weir
