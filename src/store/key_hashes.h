// The keys of one request by their hashes. They are apart from the waiting lines that are kept by
// them, because every request lists its keys and few requests wait.
#pragma once

#include <cstdint>

#include "base/inline_vector.h"
#include "store/store.h"

namespace weir {

// The identities of the keys of a request.
using KeyHashes = InlineVector<std::uint64_t, kMaxGroupCharges>;

}  // namespace weir
