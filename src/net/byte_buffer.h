// Bytes on their way in or out: written at the end, used up from the beginning. Unlike a string it
// can be written to without first being filled with zeros, and gives memory back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace weir {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept
      : bytes_(std::move(other.bytes_)),
        capacity_(std::exchange(other.capacity_, 0)),
        begin_(std::exchange(other.begin_, 0)),
        end_(std::exchange(other.end_, 0)) {}
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    capacity_ = std::exchange(other.capacity_, 0);
    begin_ = std::exchange(other.begin_, 0);
    end_ = std::exchange(other.end_, 0);
    return *this;
  }

  std::string_view view() const noexcept { return {bytes_.get() + begin_, size()}; }
  std::span<char> bytes() noexcept { return {bytes_.get() + begin_, size()}; }
  std::size_t size() const noexcept { return end_ - begin_; }
  bool empty() const noexcept { return begin_ == end_; }
  std::size_t capacity() const noexcept { return capacity_; }

  // Room for at least `count` more bytes. What is written there counts once Wrote says so.
  char* Room(std::size_t count) {
    if (capacity_ - end_ < count) [[unlikely]]
      MakeRoom(count);
    return bytes_.get() + end_;
  }
  void Wrote(std::size_t count) noexcept { end_ += count; }
  // Up to here, in the room that was handed out last.
  void WroteUpTo(const char* end) noexcept { end_ = static_cast<std::size_t>(end - bytes_.get()); }
  void Append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(Room(text.size()), text.data(), text.size());
    end_ += text.size();
  }
  // All that is free behind the end.
  std::span<char> free() noexcept { return {bytes_.get() + end_, capacity_ - end_}; }

  void Consume(std::size_t count) noexcept {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  void Clear() noexcept { begin_ = end_ = 0; }
  // Forgets what is behind the first so many.
  void CutTo(std::size_t count) noexcept { end_ = begin_ + count; }

  // Moves what there is to the beginning of the memory, so that all that is free lies behind it.
  void Compact() noexcept {
    if (begin_ == 0) return;
    std::memmove(bytes_.get(), bytes_.get() + begin_, size());
    end_ = size();
    begin_ = 0;
  }
  // Moves what there is into memory for so many bytes, or as many as there are if those are more.
  void SetCapacity(std::size_t capacity) {
    capacity = std::max(capacity, size());
    std::unique_ptr<char[]> moved(capacity == 0 ? nullptr : new char[capacity]);
    if (!empty()) std::memcpy(moved.get(), bytes_.get() + begin_, size());
    end_ = size();
    begin_ = 0;
    bytes_ = std::move(moved);
    capacity_ = capacity;
  }

 private:
  void MakeRoom(std::size_t count) {
    if (capacity_ - size() >= count && begin_ >= size()) {
      if (!empty()) std::memcpy(bytes_.get(), bytes_.get() + begin_, size());
      end_ = size();
      begin_ = 0;
      return;
    }
    SetCapacity(std::max({capacity_ * 2, size() + count, std::size_t{256}}));
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace weir
