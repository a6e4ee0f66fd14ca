#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A loop that has timers, and nothing else.
class TimedLoop final : public Loop {
 public:
  Now now() noexcept override { return clock.Read(); }
  Now ReadClock() const noexcept override { return clock.Read(); }
  void Post(std::function<void()>) override {}
  void AtTurnEnd(TurnEnd&) override {}
  void ForgetTurnEnd(TurnEnd&) noexcept override {}
  std::unique_ptr<Stream> Connect(const Endpoint&, std::function<void(Result<void>)>) override {
    return nullptr;
  }
  std::unique_ptr<Timer> MakeTimer(std::function<void()> on_due) override {
    return std::make_unique<OneTimer>(*this, std::move(on_due));
  }

  // In steps of a millisecond.
  void Advance(Duration time) {
    for (; time > Duration(0); time -= milliseconds(1)) {
      clock.Advance(milliseconds(1));
      for (OneTimer* timer : std::vector(timers_.begin(), timers_.end())) timer->Look();
    }
  }

  ManualClock clock;

 private:
  class OneTimer final : public Timer {
   public:
    OneTimer(TimedLoop& loop, std::function<void()> on_due)
        : loop_(loop), on_due_(std::move(on_due)) {
      loop_.timers_.insert(this);
    }
    ~OneTimer() override { loop_.timers_.erase(this); }
    void Start(Duration after) override { due_ = loop_.now().steady + after; }
    void Stop() noexcept override { due_ = SteadyTime::max(); }
    void Look() {
      if (loop_.now().steady < due_) return;
      Stop();
      on_due_();
    }

   private:
    TimedLoop& loop_;
    std::function<void()> on_due_;
    SteadyTime due_ = SteadyTime::max();
  };

  std::set<OneTimer*> timers_;
};

// Remembers its members, as the store does.
class FleetBehind final : public Fleet {
 public:
  explicit FleetBehind(TimedLoop& loop) : loop_(loop) {}

  void Beat(std::string_view member, std::function<void(Result<int>)> counted) override {
    beats.push_back(loop_.now().steady);
    const SteadyTime now = loop_.now().steady;
    if (failing) {
      return counted(std::unexpected(Error{ErrorCode::kDeadline, "heartbeat: no answer"}));
    }
    std::erase_if(members_, [&](const Member& it) {
      return it.name == member || now - it.seen >= kFleetMemory;
    });
    members_.push_back({std::string(member), now});
    if (silent) {
      kept = std::move(counted);
      return;
    }
    counted(static_cast<int>(members_.size()));
  }

  std::vector<SteadyTime> beats;
  bool failing = false;
  bool silent = false;
  std::function<void(Result<int>)> kept;

 private:
  struct Member {
    std::string name;
    SteadyTime seen;
  };
  TimedLoop& loop_;
  std::vector<Member> members_;
};

class FleetCounterTest : public testing::Test {
 protected:
  GuardOptions Options() {
    return {.cap_bytes = kMinCapBytes,
            .on_notice = [this](std::string_view text) { notices_.emplace_back(text); }};
  }

  TimedLoop loop_;
  std::vector<std::string> notices_;
  Guard guard_{Options(), loop_.clock};
  FleetBehind fleet_{loop_};
};

TEST_F(FleetCounterTest, BeatsAtOnceAndThenEverySecondOrSoAtRandom) {
  const FleetCounter counter(fleet_, guard_, loop_);
  EXPECT_EQ(fleet_.beats.size(), 1u);
  EXPECT_EQ(guard_.fleet_size(), 1);
  loop_.Advance(seconds(60));
  std::set<Duration> pauses;
  for (std::size_t i = 1; i < fleet_.beats.size(); ++i) {
    pauses.insert(fleet_.beats[i] - fleet_.beats[i - 1]);
  }
  EXPECT_GE(*pauses.begin(), milliseconds(600));
  EXPECT_LE(*pauses.rbegin(), milliseconds(951));
  EXPECT_GT(pauses.size(), 10u);
}

TEST_F(FleetCounterTest, CountsEveryProcessOnce) {
  Guard other(Options(), loop_.clock);
  Guard third(Options(), loop_.clock);
  const FleetCounter counter(fleet_, guard_, loop_);
  const FleetCounter another(fleet_, other, loop_);
  {
    const FleetCounter passing(fleet_, third, loop_);
    loop_.Advance(seconds(5));
    EXPECT_EQ(guard_.fleet_size(), 3);
    EXPECT_EQ(other.fleet_size(), 3);
  }
  loop_.Advance(2 * kFleetMemory + seconds(3));
  EXPECT_EQ(guard_.fleet_size(), 2);
}

TEST_F(FleetCounterTest, KeepsTheLastCountWhileTheStoreIsGone) {
  Guard other(Options(), loop_.clock);
  const FleetCounter counter(fleet_, guard_, loop_);
  const FleetCounter another(fleet_, other, loop_);
  loop_.Advance(seconds(3));
  fleet_.failing = true;
  loop_.Advance(seconds(60));
  EXPECT_EQ(guard_.fleet_size(), 2);
}

TEST_F(FleetCounterTest, GoesByWhatIsSetIfSomethingIs) {
  GuardOptions options = Options();
  options.fleet_size = 7;
  Guard guard(options, loop_.clock);
  const FleetCounter counter(fleet_, guard, loop_);
  loop_.Advance(seconds(3));
  EXPECT_EQ(guard.fleet_size(), 7);
}

TEST_F(FleetCounterTest, NoticesThatAStoreNobodyAsksFailsAndIsBack) {
  const FleetCounter counter(fleet_, guard_, loop_);
  loop_.Advance(seconds(3));
  fleet_.failing = true;
  loop_.Advance(seconds(10));
  EXPECT_TRUE(guard_.IsDegraded());
  EXPECT_EQ(notices_.size(), 1u);
  fleet_.failing = false;
  loop_.Advance(seconds(3));
  EXPECT_FALSE(guard_.IsDegraded());
  EXPECT_EQ(notices_.size(), 2u);
}

TEST_F(FleetCounterTest, GoesOnIfABeatIsNeverAnswered) {
  const FleetCounter counter(fleet_, guard_, loop_);
  fleet_.silent = true;
  loop_.Advance(seconds(10));
  EXPECT_GE(fleet_.beats.size(), 8u);
}

TEST_F(FleetCounterTest, MayEndBeforeItsBeatIsAnswered) {
  fleet_.silent = true;
  {
    const FleetCounter counter(fleet_, guard_, loop_);
  }
  ASSERT_TRUE(fleet_.kept);
  fleet_.kept(5);
  EXPECT_EQ(guard_.fleet_size(), 1);
  loop_.Advance(seconds(5));
  EXPECT_EQ(fleet_.beats.size(), 1u);
}

}  // namespace
}  // namespace weir
