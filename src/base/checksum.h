// Tells whether bytes are still those that were written. For accidents, not for forgers: whoever
// changes the bytes can work it out anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace weir {

// XXH3-64 of bytes that come piece by piece.
class Checksum {
 public:
  Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  ~Checksum();

  void Add(std::span<const std::byte> bytes) noexcept;
  // Of all that was added so far.
  std::uint64_t Value() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir
