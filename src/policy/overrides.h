// Other limits for certain keys: up to a million of them in one flat table.
//
// A key is its subject (see Subject), known by a 64-bit fingerprint under a secret drawn at the
// start: keys in the file are told apart when it is read, and nobody can pick one that reads like
// another's. A slot is
//
//   | fingerprint 64 | number of the limit 32 | number of the row 32 |
//
// so a key takes 16 bytes, and at most 32 with the room between them. Limits are kept once each,
// however many keys have them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace weir {

// Immutable once filled; then safe to share.
class OverrideTable {
 public:
  struct Entry {
    std::uint32_t limit;
    std::uint32_t row;  // Where it came from, for those who ask why.
  };

  explicit OverrideTable(std::size_t expected = 0);

  // False if the key is there already.
  bool Add(std::string_view subject, Entry entry);
  const Entry* Find(std::string_view subject) const noexcept;

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept;

 private:
  std::size_t size_ = 0;
};

}  // namespace weir
