// The replies of one connection, in the order of its requests. A reply that must wait for something
// holds back those behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "net/byte_buffer.h"

namespace weir {

class Replies {
 public:
  // What is full when so many bytes wait to be sent, or so many replies are held, by their weight:
  // at least one.
  struct Bounds {
    std::size_t bytes;
    std::size_t held;
  };
  explicit Replies(const Bounds& bounds) noexcept : bounds_(bounds) {}

  // Where the reply to the next request is appended, whole.
  ByteBuffer& next() noexcept { return held_.empty() ? ready_ : held_.back().behind; }

  // A place for a reply that comes later, next in order.
  enum class Ticket : std::uint64_t {};
  Ticket Hold(std::size_t weight = 1);
  // Each place is filled once.
  void Fill(Ticket ticket, std::string_view reply);

  // A reply that comes later and has no place in this order: it is counted, and that is all.
  void HoldAside() noexcept { ++aside_; }
  void FilledAside() noexcept { --aside_; }

  // What can be sent.
  ByteBuffer& ready() noexcept { return ready_; }
  std::size_t held() const noexcept { return unfilled_ + aside_; }
  // No request should be taken up before some replies have left.
  bool IsFull() const noexcept {
    if (held_.empty()) return ready_.size() >= bounds_.bytes;  // As mostly.
    return ready_.size() + held_bytes() >= bounds_.bytes || weight_ >= bounds_.held;
  }
  // What is ready to be sent only after something else.
  std::size_t held_bytes() const noexcept {
    return held_.empty() ? 0 : counted_bytes_ + held_.back().behind.size();
  }

  // The connection ends when everything has been sent.
  void CloseWhenSent() noexcept { closing_ = true; }
  bool closing() const noexcept { return closing_; }

 private:
  struct Held {
    std::uint64_t number = 0;
    std::size_t weight = 1;
    bool filled = false;
    ByteBuffer reply{};
    ByteBuffer behind{};  // Of the requests after it.
  };

  const Bounds bounds_;
  ByteBuffer ready_;
  std::deque<Held> held_;
  std::uint64_t last_ = 0;
  std::size_t unfilled_ = 0;
  std::size_t aside_ = 0;
  std::size_t weight_ = 0;         // Of all that are held.
  std::size_t counted_bytes_ = 0;  // Held, but for those behind the last place, which still grow.
  bool closing_ = false;
};

}  // namespace weir
