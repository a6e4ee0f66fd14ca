#include "governor_peer.h"

#include <dlfcn.h>

#include "harness/require.h"

namespace weir::bench {

GovernorLibrary::GovernorLibrary(const std::string& path)
    : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  Require(handle_ != nullptr, "governor's library loads");
  Load(make_, "governor_make");
  Load(free_, "governor_free");
  Load(queries_, "governor_queries");
  Load(free_queries_, "governor_free_queries");
  Load(check_, "governor_check");
  Load(len_, "governor_len");
}

template <typename Function>
void GovernorLibrary::Load(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(handle_, name));
  Require(function != nullptr, name);
}

GovernorLibrary::Queries::Queries(const GovernorLibrary& library, const KeySequence& sequence)
    : queries_(library.queries_(sequence.data(), kKeyBytes, kKeyStride, sequence.size()),
               library.free_queries_) {}

GovernorLibrary::Limiter::Limiter(const GovernorLibrary& library, std::uint32_t burst,
                                  bool reads_clock, GovernorKey key)
    : library_(library),
      limiter_(library.make_(burst, reads_clock, key == GovernorKey::kString), library.free_) {}

}  // namespace weir::bench
