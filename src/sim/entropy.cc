// OpenSSL would rather have a provider than a method, but then one for all threads.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "sim/entropy.h"

#include <mutex>

#include <openssl/rand.h>
#undef OPENSSL_SUPPRESS_DEPRECATED

#include "sim/random.h"

namespace weir::sim {
namespace {

thread_local Random source(0);

int Fill(unsigned char* bytes, int count) {
  for (int i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(source.Next());
  return 1;
}

int IsReady() { return 1; }

}  // namespace

void SeedEntropy(std::uint64_t seed) {
  static std::once_flag once;
  std::call_once(once, [] {
    static constexpr RAND_METHOD kMethod = {.seed = nullptr,
                                            .bytes = Fill,
                                            .cleanup = nullptr,
                                            .add = nullptr,
                                            .pseudorand = Fill,
                                            .status = IsReady};
    RAND_set_rand_method(&kMethod);
  });
  source = Random(seed);
}

}  // namespace weir::sim
