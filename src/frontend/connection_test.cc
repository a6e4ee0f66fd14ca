#include "frontend/connection.h"

#include <charconv>
#include <string>

#include <gtest/gtest.h>

#include "frontend/late_engine_under_test.h"
#include "net/loop_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

// Requests are lines. "wait N" waits up to so many milliseconds for the policy's only rule, "ask N"
// reserves under it and is answered later, "big" is answered by 100 bytes, "bye" ends the
// connection, all others are sent back.
class LineProtocol final : public Protocol {
 public:
  explicit LineProtocol(Exchange& exchange) : exchange_(exchange) {}

  Progress OnInput(std::span<char> input) noexcept override {
    Progress progress;
    std::string_view left(input.data(), input.size());
    while (!exchange_.replies().IsFull() && !exchange_.replies().closing()) {
      const std::size_t end = left.find('\n');
      if (end == std::string_view::npos) break;
      Answer(left.substr(0, end));
      left.remove_prefix(end + 1);
    }
    progress.used = input.size() - left.size();
    return progress;
  }
  void OnAnswered(const ReplyPlace& place, const Told& told) noexcept override {
    const bool allowed = told.answer.decision.allowed;
    exchange_.replies().Fill(place.ticket,
                             (allowed ? "ok " : "no ") + std::to_string(place.tag) + "\n");
  }
  void OnTimeout() noexcept override { exchange_.replies().next().Append("too slow\n"); }

 private:
  void Answer(std::string_view line) {
    constexpr std::string_view kWait = "wait ";
    constexpr std::string_view kAsk = "ask ";
    if (line.starts_with(kWait)) {
      std::uint64_t ms = 0;
      std::from_chars(line.data() + kWait.size(), line.data() + line.size(), ms);
      exchange_.CheckWaiting({}, {}, std::chrono::milliseconds(ms),
                             {.ticket = exchange_.replies().Hold(), .tag = ms});
    } else if (line.starts_with(kAsk)) {
      std::uint64_t tag = 0;
      std::from_chars(line.data() + kAsk.size(), line.data() + line.size(), tag);
      exchange_.AskLater({.kind = Question::Kind::kReserve},
                         {.ticket = exchange_.replies().Hold(), .tag = tag});
    } else if (line == "big") {
      exchange_.replies().next().Append(std::string(100, 'b'));
    } else {
      exchange_.replies().next().Append(std::string(line) + "\n");
      if (line == "bye") exchange_.replies().CloseWhenSent();
    }
  }

  Exchange& exchange_;
};

class NoState final : public ServiceState {
 public:
  Readiness readiness() const noexcept override { return Readiness::kReady; }
  std::string MetricsText() const override { return {}; }
};

class ConnectionTest : public testing::Test, public ConnectionKeeper, public TurnEnd {
 protected:
  void SetUp() override { Connect(); }

  void Connect() {
    ASSERT_FALSE(gate_.Enter("192.0.2.1"));
    connection_ = std::make_unique<Connection>(
        Connection::Surroundings{.keeper = *this, .gate = gate_, .door = door_}, 7,
        std::make_unique<StreamUnderTest>(far_),
        [](Exchange& exchange) -> std::unique_ptr<Protocol> {
          return std::make_unique<LineProtocol>(exchange);
        });
    connection_->Start();
  }
  void Remove(std::uint64_t) noexcept override { connection_.reset(); }
  Connection* Find(std::uint64_t id) noexcept override {
    return id == 7 ? connection_.get() : nullptr;
  }

  void CallAtTurnEnd(std::uint64_t id) override {
    if (called_.empty()) loop_.AtTurnEnd(*this);
    called_.push_back(id);
  }
  void OnTurnEnd() noexcept override {
    for (const std::uint64_t id : std::exchange(called_, {})) {
      if (Connection* const connection = Find(id)) connection->OnTurnEnd();
    }
  }
  std::shared_ptr<Mailbox> mailbox() noexcept override { return mailbox_; }

  static Engine MakeEngine(Clock& clock) {
    PolicySpec spec;
    spec.rules.push_back({.name = "queue",
                          .limit = "10/s burst 100",
                          .algorithm = Algorithm::kLeakyBucket,
                          .queue = true});
    return std::move(*Engine::Make(*Policy::Make(spec).policy, {.clock = &clock}));
  }
  static std::shared_ptr<const Settings> Small() {
    PolicySpec spec;
    spec.limits.output = 1000;
    spec.limits.pipeline = 3;
    spec.limits.buffers = 1 << 20;
    return Settings::Of(spec);
  }
  std::uint64_t Refused(Refusal why) const {
    return metrics_.refused[static_cast<std::size_t>(why)].Value();
  }
  // Until all that waited have been answered.
  void LetWaitsEnd(std::size_t waits) {
    for (std::size_t i = 0; i < waits * 2 && engine_.Stats().store.waiters > 0; ++i) {
      while (loop_.clock.Waiting() == 0) std::this_thread::yield();
      loop_.Advance(100ms);
      while (engine_.Stats().store.waiters > 0 && loop_.clock.Waiting() == 0) {
        std::this_thread::yield();
      }
    }
    while (!connection_ || connection_->replies().held() > 0) {
      loop_.Turn();
      if (!connection_) break;
    }
  }

  LoopUnderTest loop_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(loop_);
  Engine engine_ = MakeEngine(loop_.clock);
  NoState state_;
  Desk desk_{.engine = engine_, .loop = loop_, .state = state_, .settings = Small()};
  ListenerMetrics metrics_{};
  Door door_{.desk = desk_, .access = {}, .metrics = metrics_};
  Gate gate_{desk_.settings->limits};
  FarEnd far_;
  LateEngine late_{engine_, loop_};
  std::vector<std::uint64_t> called_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, AnswersRequestsThatComeTogetherOrInPieces) {
  far_.Send("one\ntwo\nthr");
  EXPECT_EQ(far_.Take(), "one\ntwo\n");
  far_.Send("ee\n");
  EXPECT_EQ(far_.Take(), "three\n");
}

TEST_F(ConnectionTest, ReadsARequestOfAnySize) {
  const std::string line(200'000, 'x');
  far_.Send(line + "\n");
  far_.Open(1 << 20);
  EXPECT_EQ(far_.Take(), line + "\n");
}

TEST_F(ConnectionTest, EndsWhenItsPeerIsDoneAndAllWasSent) {
  far_.window = 2;
  far_.Send("one\n");
  far_.FinishSending();
  EXPECT_FALSE(far_.closed);
  far_.Open(100);
  EXPECT_EQ(far_.Take(), "one\n");
  EXPECT_TRUE(far_.closed);
  EXPECT_EQ(gate_.connections(), 0U);
  EXPECT_EQ(gate_.buffered(), 0U);
  EXPECT_EQ(metrics_.connections.Value(), 0U);
}

TEST_F(ConnectionTest, SendsTheLastReplyBeforeItClosesAndLingers) {
  far_.Send("bye\nnot this\n");
  EXPECT_EQ(far_.Take(), "bye\n");
  EXPECT_TRUE(far_.finished);
  EXPECT_FALSE(far_.closed);
  far_.Send("nor this\n");
  EXPECT_EQ(far_.Take(), "");
  far_.FinishSending();
  EXPECT_TRUE(far_.closed);
}

TEST_F(ConnectionTest, DoesNotLingerForLong) {
  far_.Send("bye\n");
  loop_.clock.Advance(1100ms);
  far_.Send("still here\n");
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_TRUE(far_.closed);
}

TEST_F(ConnectionTest, IsNotReadWhileItDoesNotTakeItsReplies) {
  far_.window = 0;
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += "big\n";
  far_.Send(requests);
  EXPECT_EQ(Refused(Refusal::kOutput), 1U);
  EXPECT_TRUE(far_.room.empty()) << "reads on";
  EXPECT_LT(connection_->replies().ready().size(), 1200U);
  far_.Open(1 << 20);
  EXPECT_EQ(far_.Take().size(), 10'000U);
  EXPECT_FALSE(far_.room.empty());
}

TEST_F(ConnectionTest, EndsWhenRepliesAreNotTakenInTime) {
  const std::string line(200'000, 'x');
  far_.window = 1;
  far_.Send(line + "\n");
  for (int i = 0; i < 3; ++i) {
    loop_.clock.Advance(9s);
    connection_->CheckDeadlines(loop_.now().steady);
    ASSERT_FALSE(far_.closed);
    far_.Open(65'536);  // Slow, but it goes on.
  }
  loop_.clock.Advance(6s);
  far_.Open(1);  // As good as nothing.
  loop_.clock.Advance(6s);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_TRUE(far_.closed);
  EXPECT_EQ(Refused(Refusal::kWriteTimeout), 1U);
}

TEST_F(ConnectionTest, EndsWhenARequestIsNotCompletedInTimeHoweverManyBytesCome) {
  far_.Send("s");
  for (int second = 0; second < 10; ++second) {
    loop_.clock.Advance(1s);
    connection_->CheckDeadlines(loop_.now().steady);
    ASSERT_FALSE(far_.finished);
    far_.Send("l");
  }
  loop_.clock.Advance(1s);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_EQ(far_.Take(), "too slow\n");
  EXPECT_TRUE(far_.finished);
  EXPECT_EQ(Refused(Refusal::kHeaderTimeout), 1U);
}

TEST_F(ConnectionTest, EndsWhenItIsIdleForTooLong) {
  far_.Send("one\n");
  loop_.clock.Advance(299s);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_FALSE(far_.finished);
  loop_.clock.Advance(2s);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_TRUE(far_.finished);
  EXPECT_EQ(Refused(Refusal::kIdleTimeout), 1U);
}

TEST_F(ConnectionTest, HoldsRepliesBackBehindOneThatWaits) {
  far_.Send("wait 1000\nwait 1001\nafter\n");
  loop_.Turn();  // The first need not wait.
  EXPECT_EQ(far_.Take(), "ok 1000\n");
  LetWaitsEnd(1);
  EXPECT_EQ(far_.Take(), "ok 1001\nafter\n");
}

TEST_F(ConnectionTest, IsNotReadWhileAsManyWaitAsMay) {
  far_.Send("wait 1000\nwait 1000\nwait 1000\nwait 1000\nlast\n");
  EXPECT_EQ(Refused(Refusal::kPipeline), 1U);
  EXPECT_EQ(connection_->replies().held(), 3U);
  LetWaitsEnd(3);
  LetWaitsEnd(3);
  EXPECT_EQ(far_.Take(), "ok 1000\nok 1000\nok 1000\nok 1000\nlast\n");
}

TEST_F(ConnectionTest, IsReadAgainWhenAHeldReplyWasAllThatFilledIt) {
  std::string requests = "wait 1000\nwait 1000\n";
  for (int i = 0; i < 20; ++i) requests += "big\n";
  far_.Send(requests + "last\n");
  EXPECT_EQ(connection_->replies().held(), 2U);
  LetWaitsEnd(2);
  const std::string received = far_.Take();
  EXPECT_TRUE(received.ends_with("last\n")) << received;
  far_.Send("more\n");
  EXPECT_EQ(far_.Take(), "more\n");
}

TEST_F(ConnectionTest, CountsWhatIsHeldBackAmongItsBuffers) {
  far_.Send("wait 1000\nwait 1000\n");
  const std::size_t before = gate_.buffered();
  far_.Send("big\nbig\nbig\nbig\nbig\n");
  far_.Send("one\n");
  EXPECT_GE(gate_.buffered(), before + 500);
  LetWaitsEnd(2);
}

TEST_F(ConnectionTest, AnswersAPeerThatIsDoneIfItsAnswerNeedsNoWait) {
  far_.Send("wait 1000\n");
  far_.FinishSending();
  EXPECT_FALSE(far_.closed);
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 1000\n");
  EXPECT_TRUE(far_.closed);
}

TEST_F(ConnectionTest, KeepsNoMemoryWhileItIsIdle) {
  far_.Send(std::string(60'000, 'x') + "\n");
  far_.Open(1 << 20);
  loop_.clock.Advance(2s);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_LE(gate_.buffered(), 2048U);
  far_.Take();
  far_.Send("one\n");
  EXPECT_EQ(far_.Take(), "one\n");
}

TEST_F(ConnectionTest, GivesItsPlacesUpWhenItsPeerHangsUpWhileWaiting) {
  far_.Send("wait 1000\nwait 1000\n");
  EXPECT_EQ(engine_.Stats().store.waiters, 1U);
  far_.FinishSending();
  EXPECT_TRUE(far_.closed);
  EXPECT_EQ(engine_.Stats().store.waiters, 0U);
  loop_.Turn();  // The first answer finds nobody.
}

TEST_F(ConnectionTest, NoticesAHangUpWhileItIsNotRead) {
  far_.Send("wait 1000\nwait 1000\nwait 1000\nwait 1000\nlast\n");
  EXPECT_TRUE(far_.room.empty());
  EXPECT_EQ(engine_.Stats().store.waiters, 2U);
  far_.FinishSending();
  EXPECT_TRUE(far_.closed);
  EXPECT_EQ(engine_.Stats().store.waiters, 0U);
}

TEST_F(ConnectionTest, CountsWhatItsStreamHoldsAsItsOwn) {
  const std::size_t before = gate_.buffered();
  far_.held = 100'000;
  far_.Send("hello\n");
  EXPECT_GE(gate_.buffered(), before + 100'000);
  far_.held = 0;
  far_.Send("hello\n");
  EXPECT_LT(gate_.buffered(), before + 10'000);
}

TEST_F(ConnectionTest, EndsWhenAllConnectionsTogetherHoldTooMuch) {
  EXPECT_FALSE(gate_.AddBuffered(1 << 20));
  far_.Send(std::string(100'000, 'x'));
  EXPECT_TRUE(far_.closed);
  EXPECT_EQ(Refused(Refusal::kBuffers), 1U);
  EXPECT_EQ(gate_.buffered(), std::size_t{1} << 20);
}

TEST_F(ConnectionTest, GivesBackMemoryOnceItIsNotNeeded) {
  far_.Send(std::string(60'000, 'x') + "\n");
  far_.Open(1 << 20);
  const std::size_t much = gate_.buffered();
  for (int i = 0; i < 100; ++i) far_.Send("one\n");
  EXPECT_LT(gate_.buffered(), much / 4);
}

TEST_F(ConnectionTest, DrainsOnceItIsQuiet) {
  far_.Send("one\n");
  connection_->Drain(loop_.now().steady);
  loop_.clock.Advance(80ms);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_FALSE(far_.finished);
  far_.Send("two\n");  // Still served.
  loop_.clock.Advance(80ms);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_FALSE(far_.finished);
  loop_.clock.Advance(80ms);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_TRUE(far_.finished);
  EXPECT_EQ(far_.Take(), "one\ntwo\n");
}

TEST_F(ConnectionTest, AnswersWhatItHasTakenUpWhenTheDrainEnds) {
  far_.window = 2;
  far_.Send("one\ntwo\n");
  connection_->EndDrain();
  EXPECT_FALSE(far_.finished);
  far_.Open(100);
  EXPECT_EQ(far_.Take(), "one\ntwo\n");
  EXPECT_TRUE(far_.finished);
}

class LateConnectionTest : public ConnectionTest {
 protected:
  void SetUp() override {
    desk_.questions = &late_;
    ConnectionTest::SetUp();
  }
};

TEST_F(LateConnectionTest, SendsWhatOneTurnAnsweredInOnePiece) {
  far_.Send("ask 1\nask 2\nafter\n");
  EXPECT_EQ(late_.pending(), 2U);
  EXPECT_EQ(far_.Take(), "");
  late_.AnswerAllBackwards();
  EXPECT_EQ(far_.Take(), "") << "before the turn has ended";
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 1\nok 2\nafter\n");
}

TEST_F(LateConnectionTest, SendsWhatIsAnsweredAtOnce) {
  late_.at_once = true;
  far_.Send("ask 1\nask 2\nask 3\nask 4\nask 5\nafter\n");
  EXPECT_EQ(far_.Take(), "ok 1\nok 2\nok 3\nok 4\nok 5\nafter\n");
  EXPECT_TRUE(called_.empty());
}

TEST_F(LateConnectionTest, IsNotReadWhileAsManyAreUnderWayAsMayBe) {
  far_.Send("ask 1\nask 2\nask 3\nask 4\nlast\n");
  EXPECT_EQ(late_.pending(), 3U);
  EXPECT_TRUE(far_.room.empty()) << "reads on";
  late_.Answer(1);
  loop_.Turn();
  EXPECT_EQ(late_.pending(), 2U) << "the first is still held";
  late_.Answer(0);
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 1\nok 2\n");
  EXPECT_EQ(late_.pending(), 2U);
  EXPECT_FALSE(far_.room.empty());
  late_.AnswerAll();
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 3\nok 4\nlast\n");
}

TEST_F(LateConnectionTest, GivesBackWhatWasReservedForAPeerThatHasGone) {
  far_.Send("ask 1\nask 2\n");
  EXPECT_EQ(engine_.Stats().store.reservations, 2U);
  connection_.reset();
  late_.AnswerAll();
  EXPECT_EQ(late_.kinds.back(), Question::Kind::kCancel);
  EXPECT_EQ(engine_.Stats().store.reservations, 0U);
  loop_.Turn();
}

TEST_F(LateConnectionTest, AsksNothingMoreWhenTheThreadEnds) {
  far_.Send("ask 1\n");
  connection_.reset();
  desk_.ending = true;
  late_.AnswerAll();
  EXPECT_EQ(late_.kinds.size(), 1U);
}

TEST_F(LateConnectionTest, IsForgottenWhenItEndsBeforeTheTurn) {
  far_.Send("ask 1\n");
  late_.AnswerAll();
  connection_.reset();
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "");
}

TEST_F(LateConnectionTest, AnswersAPeerThatIsDone) {
  far_.Send("ask 1\nask 2\n");
  far_.FinishSending();
  EXPECT_FALSE(far_.closed);
  late_.AnswerAll();
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 1\nok 2\n");
  EXPECT_TRUE(far_.closed);
}

TEST_F(LateConnectionTest, IsNotCutOffByADeadlineWhileTheStoreIsAsked) {
  far_.Send("ask 1\npart of ");
  loop_.clock.Advance(1000s);
  connection_->CheckDeadlines(loop_.now().steady);
  connection_->Drain(loop_.now().steady);
  loop_.clock.Advance(1000s);
  connection_->CheckDeadlines(loop_.now().steady);
  EXPECT_FALSE(far_.finished);
  late_.AnswerAll();
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 1\n");
}

TEST_F(LateConnectionTest, WaitsForAnswersWhenTheDrainEnds) {
  far_.Send("ask 1\n");
  connection_->EndDrain();
  EXPECT_FALSE(far_.finished);
  late_.AnswerAll();
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 1\n");
  EXPECT_TRUE(far_.finished);
}

TEST_F(LateConnectionTest, RecordsHowLongTheAnswerTook) {
  far_.Send("ask 1\n");
  loop_.clock.Advance(3ms);
  late_.AnswerAll();
  EXPECT_EQ(metrics_.decision_time.sum_nanoseconds(), 3'000'000U);
  loop_.Turn();
}

TEST_F(LateConnectionTest, KeepsTheOrderOfThoseThatWaitAndThoseThatAsk) {
  far_.Send("ask 1\nwait 1000\nask 2\n");
  late_.AnswerAll();
  loop_.Turn();
  LetWaitsEnd(1);
  loop_.Turn();
  EXPECT_EQ(far_.Take(), "ok 1\nok 1000\nok 2\n");
}

TEST_F(ConnectionTest, EndsAtOnceWhenItIsBroken) {
  far_.broken = true;
  far_.Send("one\n");
  EXPECT_TRUE(far_.closed);
}

}  // namespace
}  // namespace weir
