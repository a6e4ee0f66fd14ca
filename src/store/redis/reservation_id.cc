#include "store/redis/reservation_id.h"

#include <openssl/rand.h>

#include "base/hash.h"

namespace weir::redis {

ReservationId DrawReservationId(std::uint16_t slot) noexcept {
  std::uint64_t random = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&random), sizeof(random)) != 1) {
    // Never seen to happen. The address and a secret are still nothing a client could guess.
    static const KeyHasher kHasher(HashKind::kSipHash);
    static thread_local std::uint64_t drawn = 0;
    const std::uint64_t words[] = {++drawn, reinterpret_cast<std::uintptr_t>(&drawn)};
    random = kHasher({reinterpret_cast<const char*>(words), sizeof(words)});
  }
  constexpr std::uint64_t kShared = std::uint64_t{1} << 63;
  return ReservationInSlot(ReservationId{random | kShared}, slot);
}

}  // namespace weir::redis
