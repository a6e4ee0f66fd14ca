#include "net/loop_under_test.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(LoopUnderTest, RunsTimersInTheOrderInWhichTheyAreDueAndAtTheirTime) {
  LoopUnderTest loop;
  const SteadyTime start = loop.now().steady;
  std::string order;
  const auto late = loop.MakeTimer([&] {
    EXPECT_EQ(loop.now().steady, start + 30ms);
    order += 'c';
  });
  const auto early = loop.MakeTimer([&] {
    EXPECT_EQ(loop.now().steady, start + 10ms);
    order += 'a';
  });
  const auto second = loop.MakeTimer([&] { order += 'b'; });
  const auto stopped = loop.MakeTimer([&] { order += 'x'; });
  late->Start(30ms);
  early->Start(1h);
  early->Start(10ms);  // The start before is forgotten.
  second->Start(10ms);
  stopped->Start(1ms);
  stopped->Stop();
  loop.Advance(29ms);
  EXPECT_EQ(order, "ab");
  loop.Advance(1ms);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(loop.timers(), 0U);
  EXPECT_EQ(loop.now().steady, start + 30ms);
}

TEST(LoopUnderTest, LetsATimerStartAnotherAndEndItself) {
  LoopUnderTest loop;
  int ticks = 0;
  std::unique_ptr<Timer> timer;
  timer = loop.MakeTimer([&] {
    if (++ticks == 3) return timer.reset();
    timer->Start(10ms);
  });
  timer->Start(10ms);
  loop.Advance(1s);
  EXPECT_EQ(ticks, 3);
}

TEST(LoopUnderTest, ConcludesAnAttemptAsTheTestSays) {
  LoopUnderTest loop;
  std::string outcomes;
  const auto note = [&](const Result<void>& done) {
    outcomes += done ? std::string("ok") : done.error().message;
  };
  auto first = loop.Connect(*Endpoint::Parse("127.0.0.1:1"), note);
  auto second = loop.Connect(*Endpoint::Parse("127.0.0.1:2"), note);
  auto third = loop.Connect(*Endpoint::Parse("127.0.0.1:3"), note);
  ASSERT_EQ(loop.attempts.size(), 3U);
  EXPECT_EQ(loop.attempts[1]->endpoint.port, 2);
  EXPECT_TRUE(loop.attempts[0]->pending());
  loop.attempts[0]->Accept();
  EXPECT_EQ(outcomes, "ok");
  EXPECT_EQ(first->Write("hello"), 5U);
  EXPECT_EQ(loop.attempts[0]->far.Take(), "hello");
  loop.attempts[1]->Refuse("no");
  loop.attempts[1]->Accept();
  EXPECT_EQ(outcomes, "okno");
  third.reset();
  EXPECT_FALSE(loop.attempts[2]->pending());
  loop.attempts[2]->Accept();
  EXPECT_EQ(outcomes, "okno");
}

}  // namespace
}  // namespace weir
