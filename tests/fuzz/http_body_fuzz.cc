// Bodies that clients write as most do are read on a way of their own: whatever the bytes are, it
// must read what the parser of all other bodies reads, and nothing that the parser would refuse.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "frontend/http/bodies_under_test.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string json(reinterpret_cast<const char*>(data), size);
  constexpr weir::BodyFieldSet kAll = weir::SetOf(weir::BodyField::kReservation) * 2 - 1;
  if (const auto difference = weir::DifferenceOfWays(json, {.allowed = kAll, .may_wait = true})) {
    std::fprintf(stderr, "%s:\n%s\n", difference->c_str(), json.c_str());
    std::abort();
  }
  return 0;
}
