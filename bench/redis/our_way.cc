#include "our_way.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/clock.h>

#include "base/hash.h"
#include "harness/keys.h"
#include "harness/limits.h"
#include "harness/random.h"
#include "harness/require.h"
#include "net/epoll_loop.h"
#include "store/redis/redis_store.h"

namespace weir::bench {
namespace {

constexpr std::size_t kMostRules = 3;
constexpr std::array<std::string_view, kMostRules> kRules = {"per-user", "per-ip", "per-user-path"};
constexpr std::array<std::string_view, kMostRules> kFields = {"user=", "ip=", "path=%2Fapi&user="};
constexpr std::size_t kMostInFlightOpen = 16'384;

redis::Settings To(std::uint16_t port) {
  redis::Settings settings;
  settings.sites = {{.endpoint = {.host = "127.0.0.1", .port = port}}};
  // A stall of the machine must not end a run: it shows in the times.
  settings.timeout = std::chrono::seconds(2);
  settings.max_in_flight = kMostInFlightOpen;
  return settings;
}

// A group, and all it points to.
struct Slot : Group {
  std::array<std::string, kMostRules> texts{};
  std::array<Charge, kMostRules> of_rules{};
  std::array<Decision, kMostRules> answers{};
  SteadyTime due{};
};

class OurWay final : private Completion {
 public:
  OurWay(const RunOptions& options, const OurOptions& ours)
      : options_(options),
        ours_(ours),
        settings_(To(options.port)),
        keys_(KeySequence::Drawn(Spread::kUniform, options.keys, 1 << 18)),
        cursor_(keys_, 0),
        slots_(ours.rate > 0 ? kMostInFlightOpen : ours.in_flight),
        commons_(settings_, {}),
        store_(loop_, settings_, hasher_, commons_),
        first_(loop_.MakeTimer([this] { SubmitOne({}); })) {
    for (Slot& slot : slots_) free_.push_back(&slot);
  }

  void Run() {
    first_->Start(kPause);
    loop_.Run();
    measurement_->Print();
  }

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(50);

  // Groups fail at once until there is a connection.
  void OnFirst(const Group& group) {
    Require(++tries_ < 100, "the server can be reached");
    if (group.error) return first_->Start(kPause);
    next_ = Clock();
    measurement_.emplace(options_);
    loop_.Post([this] { OnTurn(); });
  }

  // Never sleeps, because the server would have to wake it, at the server's cost.
  void OnTurn() {
    const SteadyTime now = Clock();
    over_ = measurement_->IsOver(now);
    if (over_) return loop_.Stop();
    begun_ = measurement_->HasBegun(now);
    if (ours_.rate > 0) {
      SubmitThoseDue(now);
    } else {
      while (!free_.empty()) SubmitOne(now);
    }
    loop_.Post([this] { OnTurn(); });
  }
  void SubmitThoseDue(SteadyTime now) {
    while (next_ <= now) {
      Require(!free_.empty(), "the store keeps up with the rate");
      if (begun_) measurement_->AddLate(now - next_);
      SubmitOne(next_);
      // Exponential gaps: a Poisson process.
      const double gap = -std::log1p(-random_.Fraction()) / ours_.rate * 1e9;
      next_ += Duration(static_cast<Duration::rep>(gap));
    }
  }

  void SubmitOne(SteadyTime due) {
    Slot& slot = *free_.back();
    free_.pop_back();
    const std::string_view id = cursor_.Next().substr(std::string_view("user:").size());
    for (std::size_t i = 0; i < ours_.rules; ++i) {
      slot.texts[i].assign(kFields[i]).append(id);
      slot.of_rules[i] = {.rule = kRules[i],
                          .key = slot.texts[i],
                          .hash = store_.Hash(slot.texts[i]),
                          .limit = &limit_};
    }
    slot.due = due;
    static_cast<Group&>(slot) = {.charges = std::span(slot.of_rules).first(ours_.rules),
                                 .decisions = std::span(slot.answers).first(ours_.rules)};
    store_.Submit(std::span<Group>(static_cast<Group*>(&slot), 1), loop_.now(), *this);
  }

  void OnDecided(Group& group) noexcept override {
    if (over_) return;
    Slot& slot = static_cast<Slot&>(group);
    free_.push_back(&slot);
    if (!measurement_) return OnFirst(group);
    if (group.error) std::fprintf(stderr, "benchmark: %s\n", group.error->message.c_str());
    Require(!group.error && group.decision.allowed, "every request is let through");
    if (begun_) measurement_->Count(1);
    if (begun_ && ours_.rate > 0) measurement_->AddTime(Clock() - slot.due);
    // The next one follows at once, as with the others.
    if (ours_.rate == 0) SubmitOne({});
  }

  const RunOptions options_;
  const OurOptions ours_;
  const redis::Settings settings_;
  const KeySequence keys_;
  Cursor cursor_;
  std::vector<Slot> slots_;
  std::vector<Slot*> free_;
  const KeyHasher hasher_{HashKind::kXxh3, 1};
  const Limit limit_ = ParseLimit("10k/day burst 100k").ForSharedStore().value();
  Random random_{1};
  SteadyTime next_{};  // When a group is due.
  int tries_ = 0;
  bool begun_ = false;
  bool over_ = false;
  std::optional<Measurement> measurement_;
  EpollLoop loop_{SystemClock::Shared()};
  redis::Commons commons_;
  redis::RedisStore store_;
  std::unique_ptr<Timer> first_;
};

}  // namespace

void RunOurWay(const RunOptions& options, const OurOptions& ours) { OurWay(options, ours).Run(); }

}  // namespace weir::bench
