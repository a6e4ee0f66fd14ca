#include "sim/network.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "sim/caller_under_test.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kAddress[] = "10.0.0.1:6379";

// Sends back what it is sent.
class Echo final : public Acceptor {
 public:
  class Session final : public StreamHandler {
   public:
    explicit Session(std::unique_ptr<Stream> given) : stream(std::move(given)) {
      stream->SetHandler(*this);
      stream->Read(room);
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    void OnRead(std::size_t count) noexcept override {
      received.append(room.data(), count);
      if (count == 0) return stream.reset();
      (void)stream->Write({room.data(), count});
      stream->Read(room);
    }
    void OnHangUp() noexcept override {}
    void OnWritable() noexcept override {}
    void OnBroken() noexcept override { is_broken = true; }

    std::unique_ptr<Stream> stream;
    std::array<char, 64> room{};
    std::string received;
    bool is_broken = false;
  };

  void OnAccept(std::unique_ptr<Stream> stream) override {
    sessions.push_back(std::make_unique<Session>(std::move(stream)));
  }

  std::vector<std::unique_ptr<Session>> sessions;
};

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() { network.Listen(kAddress, far, echo); }

  World world{7};
  Network network{world};
  SimLoop far{world, nullptr};
  SimLoop near{world, &network};
  Echo echo;
};

TEST_F(NetworkTest, CarriesBytesThereAndBack) {
  CallerUnderTest caller(near, kAddress);
  EXPECT_FALSE(caller.connected);
  world.RunFor(milliseconds(1));
  ASSERT_EQ(caller.connected, true);
  EXPECT_EQ(caller.stream->Write("hello"), 5U);
  EXPECT_EQ(caller.received, "");
  world.RunFor(milliseconds(1));
  EXPECT_EQ(caller.Take(), "hello");
  EXPECT_EQ(network.ConnectionsAt(kAddress), 1U);
  caller.stream.reset();
  world.RunFor(milliseconds(1));
  EXPECT_EQ(echo.sessions.front()->stream, nullptr);
  EXPECT_EQ(network.ConnectionsAt(kAddress), 0U);
}

TEST_F(NetworkTest, CutsWhatWasSentIntoPiecesWithoutChangingTheirOrder) {
  network.SetWeather(kAddress, {.most_latency = milliseconds(2), .split_percent = 100});
  CallerUnderTest caller(near, kAddress);
  world.RunFor(milliseconds(10));
  (void)caller.stream->Write("0123456789");
  (void)caller.stream->Write("abcdefghij");
  world.RunFor(milliseconds(100));
  EXPECT_EQ(caller.received, "0123456789abcdefghij");
  EXPECT_GT(caller.reads, 3);
}

TEST_F(NetworkTest, RefusesOrKeepsSilent) {
  network.SetWeather(kAddress, {.door = Weather::Door::kRefuses});
  CallerUnderTest refused(near, kAddress);
  CallerUnderTest nobody(near, "10.0.0.9:1");
  world.RunFor(milliseconds(1));
  EXPECT_EQ(refused.connected, false);
  EXPECT_EQ(nobody.connected, false);
  network.SetWeather(kAddress, {.door = Weather::Door::kSilent});
  CallerUnderTest ignored(near, kAddress);
  world.RunFor(seconds(100));
  EXPECT_FALSE(ignored.connected);
}

TEST_F(NetworkTest, HoldsBackWhileItStallsAndDeliversAfterwards) {
  CallerUnderTest caller(near, kAddress);
  world.RunFor(milliseconds(1));
  network.SetWeather(kAddress, {.stalls_to_client = true});
  (void)caller.stream->Write("a");
  world.RunFor(seconds(1));
  EXPECT_EQ(echo.sessions.front()->received, "a");
  EXPECT_EQ(caller.received, "");
  network.SetWeather(kAddress, {});
  world.RunFor(milliseconds(1));
  EXPECT_EQ(caller.received, "a");
}

TEST_F(NetworkTest, LosesForGood) {
  CallerUnderTest caller(near, kAddress);
  world.RunFor(milliseconds(1));
  network.SetWeather(kAddress, {.loses_to_client = true});
  (void)caller.stream->Write("a");
  world.RunFor(milliseconds(1));
  network.SetWeather(kAddress, {});
  (void)caller.stream->Write("b");
  world.RunFor(seconds(1));
  EXPECT_EQ(echo.sessions.front()->received, "ab");
  EXPECT_EQ(caller.received, "");
}

TEST_F(NetworkTest, BreaksAStreamWhoseBytesAreNotAcknowledgedInTime) {
  CallerUnderTest caller(near, kAddress);
  world.RunFor(milliseconds(1));
  caller.stream->SetUserTimeout(milliseconds(100));
  network.SetWeather(kAddress, {.stalls_to_server = true, .stalls_to_client = true});
  (void)caller.stream->Write("a");
  world.RunFor(milliseconds(99));
  EXPECT_FALSE(caller.is_broken);
  world.RunFor(milliseconds(2));
  EXPECT_TRUE(caller.is_broken);
  EXPECT_EQ(caller.stream->why_broken(), "connection timed out");
  EXPECT_FALSE(echo.sessions.front()->is_broken);
}

TEST_F(NetworkTest, BreaksInTheMiddleOfAReply) {
  CallerUnderTest caller(near, kAddress);
  world.RunFor(milliseconds(1));
  network.ResetAfter(kAddress, 3);
  (void)caller.stream->Write("abcdef");
  world.RunFor(milliseconds(2));
  EXPECT_EQ(caller.received, "abc");
  EXPECT_TRUE(caller.is_broken);
  EXPECT_TRUE(echo.sessions.front()->is_broken);
  EXPECT_EQ(caller.stream->Write("x"), std::nullopt);
}

TEST_F(NetworkTest, TakesNoMoreThanItsWindow) {
  network.SetWeather(kAddress, {.window = 10});
  CallerUnderTest caller(near, kAddress);
  world.RunFor(milliseconds(1));
  EXPECT_EQ(caller.stream->Write("0123456789abc"), 10U);
  EXPECT_EQ(caller.stream->Write("abc"), 0U);
  caller.stream->AwaitWritable();
  EXPECT_FALSE(caller.is_writable);
  world.RunFor(milliseconds(1));
  EXPECT_TRUE(caller.is_writable);
}

TEST_F(NetworkTest, TellsOfNothingOnceAStreamHasEnded) {
  auto caller = std::make_unique<CallerUnderTest>(near, kAddress);
  caller.reset();
  world.RunFor(seconds(1));
  EXPECT_EQ(echo.sessions.size(), 0U);
  EXPECT_EQ(network.AttemptsAt(kAddress), 1U);
}

class SimLoopTest : public NetworkTest {};

TEST_F(SimLoopTest, TellsTimersWhenTheyAreDueAndNotBefore) {
  int due = 0;
  const auto timer = near.MakeTimer([&due] { ++due; });
  timer->Start(milliseconds(10));
  world.RunFor(milliseconds(9));
  EXPECT_EQ(due, 0);
  timer->Start(milliseconds(10));
  world.RunFor(milliseconds(9));
  EXPECT_EQ(due, 0);
  world.RunFor(milliseconds(1));
  EXPECT_EQ(due, 1);
  timer->Start(milliseconds(1));
  timer->Stop();
  world.RunFor(seconds(1));
  EXPECT_EQ(due, 1);
}

TEST_F(SimLoopTest, HandlesInOneTurnWhatIsReadyAtOnce) {
  struct Counter final : TurnEnd {
    void OnTurnEnd() noexcept override { ++turns; }
    int turns = 0;
  } counter;
  for (int i = 0; i < 3; ++i) near.Post([this, &counter] { near.AtTurnEnd(counter); });
  world.RunFor(milliseconds(1));
  EXPECT_EQ(counter.turns, 1);
}

TEST_F(SimLoopTest, DoesNothingWhileItIsHeld) {
  Duration at{0};
  near.HoldUntil(milliseconds(50));
  near.Post([this, &at] { at = world.elapsed(); });
  world.RunFor(seconds(1));
  EXPECT_EQ(at, milliseconds(50));
}

TEST_F(SimLoopTest, HasAClockOfItsOwn) {
  SimLoop fast(world, nullptr, {.wall_offset = seconds(5), .drift_ppm = 1000});
  world.RunFor(seconds(1000));
  EXPECT_EQ(fast.now().steady - near.now().steady, seconds(1));
  EXPECT_EQ(fast.now().wall - near.now().wall, seconds(6));
}

TEST(World, RunsTheSameForTheSameSeed) {
  const auto run = [](std::uint64_t seed) {
    World world(seed);
    Network network(world);
    SimLoop far(world, nullptr);
    SimLoop near(world, &network);
    Echo echo;
    network.Listen(kAddress, far, echo);
    network.SetWeather(kAddress, {.split_percent = 50, .largest_piece = 3});
    CallerUnderTest caller(near, kAddress);
    world.RunFor(milliseconds(1));
    (void)caller.stream->Write("what is sent twice comes back twice");
    world.RunFor(milliseconds(10));
    world.Note(caller.received);
    return world.fingerprint();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace weir::sim
