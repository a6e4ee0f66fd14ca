#include <array>
#include <charconv>

#include "base/hash.h"
#include "base/mix.h"
#include "store/guard/guard.h"
#include "store/guard/guard_state.h"

namespace weir {
namespace {

// Several times within kFleetMemory, so that one that is lost does no harm; at random, so that the
// members of a fleet that was started at once do not beat at once; and often enough that beats that
// fail keep a degraded time on by themselves.
constexpr Duration kShortest = std::chrono::milliseconds(600);
constexpr Duration kLongest = std::chrono::milliseconds(950);
static_assert(kLongest < DegradedTime::kCalm);

// The same for the same seed, unless it is 0.
std::uint64_t DrawRandom(std::uint64_t seed) {
  return seed != 0 ? Mix(seed) : KeyHasher(HashKind::kSipHash)("member");
}

// 32 hex digits.
std::string NameFrom(std::uint64_t random) {
  std::string name;
  for (const std::uint64_t half : {random, Mix(random)}) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), half, 16).ptr;
    name.append(16 - static_cast<std::size_t>(end - digits.begin()), '0');
    name.append(digits.begin(), end);
  }
  return name;
}

}  // namespace

class FleetCounter::State : public std::enable_shared_from_this<FleetCounter::State> {
 public:
  State(Fleet& fleet, const Guard& guard, Loop& loop)
      : fleet_(fleet), guard_(guard.state_), is_in_use_(guard.is_in_use_), loop_(loop) {}

  // Once it is held by its owner.
  void Start() {
    timer_ = loop_.MakeTimer([this] { Beat(); });
    Beat();
  }
  void Stop() noexcept { timer_.reset(); }

 private:
  bool is_in_use() const noexcept { return is_in_use_->load(std::memory_order_relaxed); }
  void Beat() {
    if (!is_in_use()) return;
    // Not when the answer is there: one that is lost must not end the beat.
    timer_->Start(DrawPause());
    fleet_.Beat(name_, [weak = weak_from_this()](Result<int> counted) {
      if (const std::shared_ptr<State> state = weak.lock()) state->OnCounted(counted);
    });
  }
  void OnCounted(const Result<int>& counted) {
    if (!is_in_use()) return;
    const SteadyTime now = loop_.now().steady;
    if (!counted) return guard_->NoteFailure(counted.error(), now);
    guard_->NoteMembers(*counted, now);
    guard_->NoteSuccess(now);
  }
  Duration DrawPause() noexcept {
    random_ = Mix(random_);
    const auto span = static_cast<std::uint64_t>((kLongest - kShortest).count());
    return kShortest + Duration(static_cast<std::int64_t>(random_ % (span + 1)));
  }

  Fleet& fleet_;
  const std::shared_ptr<Guard::State> guard_;
  const std::shared_ptr<const std::atomic<bool>> is_in_use_;
  Loop& loop_;
  std::uint64_t random_ = DrawRandom(guard_->seed());
  const std::string name_ = NameFrom(random_);
  std::unique_ptr<Timer> timer_;
};

FleetCounter::FleetCounter(Fleet& fleet, Guard& guard, Loop& loop)
    : state_(std::make_shared<State>(fleet, guard, loop)) {
  state_->Start();
}
FleetCounter::~FleetCounter() { state_->Stop(); }

}  // namespace weir
