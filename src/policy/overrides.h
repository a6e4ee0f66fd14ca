// Other limits for certain keys: up to millions of them in one flat table.
//
// A key is its subject, known by a 64-bit fingerprint under a secret drawn at the start: keys in
// the file are told apart when it is read, and nobody can pick one that reads like another's. A
// slot is
//
//   | fingerprint 64 | number of the limit 32 | number of the row 32 |
//
// The slots are in the order of the fingerprints, with free ones between them. A fingerprint
// stands at its share of the way through the table or a little behind it, so the search begins
// there and ends at the first that is not less, found or not; free slots count as the greatest.
// Growing keeps the order, so it is one pass from end to end.
//
// A key takes 16 bytes, and at most 24 with the free slots. Limits are kept elsewhere, once each,
// however many keys have them.
#pragma once

#include <cstddef>
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

  // With room for so many, if it is known. There may be more.
  explicit OverrideTable(std::size_t expected = 0);

  // False if the key is there already; then nothing changes.
  bool Add(std::string_view subject, Entry entry);
  // Null if it is not there. Valid until the next Add.
  const Entry* Find(std::string_view subject) const noexcept;

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint64_t fingerprint;
    Entry entry;
  };
  static_assert(sizeof(Slot) == 16);

  std::uint64_t FingerprintOf(std::string_view subject) const noexcept;
  std::size_t HomeOf(std::uint64_t fingerprint) const noexcept;
  // Where it is, or where it belongs.
  std::size_t PlaceOf(std::uint64_t fingerprint) const noexcept;
  bool HasRoom() const noexcept;
  // Moves the slots from the place up to the next free one. False if there is none left.
  bool MakeRoomAt(std::size_t place) noexcept;
  void GrowTo(std::size_t homes);

  KeyHasher hasher_{HashKind::kSipHash};
  std::size_t size_ = 0;
  std::size_t homes_ = 0;    // Slots where a search may begin.
  std::vector<Slot> slots_;  // Some more than homes_; the last one is always free.
};

}  // namespace weir
