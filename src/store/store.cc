#include "store/store.h"

#include <algorithm>

namespace weir {
namespace {

// For those who look at the group when it is decided.
class Ignored final : public Completion {
 public:
  void OnDecided(Group&) noexcept override {}
};

}  // namespace

void SubmitOne(Store& store, Group& group, Now now) noexcept {
  Ignored completion;
  store.Submit({&group, 1}, now, completion);
}

Decision Combine(std::span<const Charge> charges, std::span<const Decision> decisions) noexcept {
  Decision speaker = SpeaksForNobody();
  bool found = false;
  Duration delay{0};
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].shadow) continue;
    delay = std::max(delay, decisions[i].delay);
    if (!found || SpeaksBefore(decisions[i], speaker)) speaker = decisions[i];
    found = true;
  }
  // Whoever goes ahead waits for the slowest of its limits.
  if (speaker.allowed) speaker.delay = delay;
  return speaker;
}

}  // namespace weir
