// The plain types that the memory store takes and returns: its options, bounds and figures. They
// are apart from the store, because the store's header brings the whole table with it, and most
// callers only pass these on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/hash.h"

namespace weir {

struct MemoryStoreOptions {
  // The most bytes that entries may take. At least kMinCapBytes.
  std::size_t cap_bytes = std::size_t{256} << 20;

  // Bucket keys for which room is made at once. The table still grows by itself.
  std::size_t expected_keys = 0;

  // Reservations and leases that may be open at a time.
  std::size_t max_reservations = 65'536;

  HashKind hash = HashKind::kXxh3;
  std::uint64_t hash_seed = 0;  // 0: a random secret.
  // To know the keys that another store knew: its hasher. Counts before the two above.
  std::optional<KeyHasher> hasher{};
};

inline constexpr std::size_t kMinCapBytes = std::size_t{2} << 20;
// Chunks of events have 32-bit numbers; and as many addresses are set aside at once.
inline constexpr std::size_t kMaxCapBytes = std::size_t{256} << 30;

struct MemoryStoreStats {
  std::size_t bytes = 0;
  std::size_t entries = 0;
  std::uint64_t evicted_live = 0;
  std::uint64_t evicted_denied = 0;
  std::uint64_t growths = 0;
  std::size_t reservations = 0;
  std::size_t event_chunks = 0;     // Held by logs and leases.
  std::uint64_t shadow_denied = 0;  // Charges that only a shadow would have denied.
};

// What came of a change of the cap.
struct CapChange {
  std::size_t bytes = 0;  // In use afterwards.
  // False only where tables have been moved thousands of times already, or the system refused
  // addresses: the store goes on with what it has and takes no more.
  bool within_cap = true;
};

}  // namespace weir
