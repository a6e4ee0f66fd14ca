// A server whose other end is the test: what is sent when, what becomes of calls that are not
// answered, and of answers that make no sense.
#include "store/redis/node.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/loop_under_test.h"
#include "net/resp/writer.h"

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kGreeting = "+OK\r\n$20\r\nredis_version:7.0.15\r\n";
constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

// What became of a call.
struct Fate {
  bool ended = false;
  CallEnd end{};
};

class Ping final : public Call {
 public:
  explicit Ping(Fate& fate) : fate_(fate) {}
  void Write(ByteBuffer& out) override { out.Append(with_text ? "*1\r\n$4\r\nTEXT\r\n" : kPing); }
  bool Take(const resp::ReplyItem& item) noexcept override {
    return item.kind == resp::ReplyItem::Kind::kSimple && item.text == "PONG";
  }
  void Ended(std::unique_ptr<Call>, Node&, CallEnd end) noexcept override {
    EXPECT_FALSE(fate_.ended);
    fate_.ended = true;
    fate_.end = std::move(end);
    fate_.end.text = {};
  }

 private:
  Fate& fate_;
};

class NodeTest : public testing::Test, private Node::Watcher {
 protected:
  static constexpr Duration kTimeout = milliseconds(50);

  NodeTest() {
    settings_.timeout = kTimeout;
    registry_ = std::make_unique<Registry>(
        settings_,
        Commons::Options{.on_notice = [this](std::string_view t) { heard_ += t; }, .seed = 1});
    loop_.Advance(seconds(100));
    registry_->TakeCheck("server:1", "");  // As if it had been seen before.
  }

  void MakeNode(std::size_t max_in_flight = 4, Credentials credentials = {}) {
    node_ = NewNode(max_in_flight, std::move(credentials));
    loop_.Advance(Duration(0));
  }
  std::unique_ptr<Node> NewNode(std::size_t max_in_flight, Credentials credentials) {
    Node::Options options{.connect_timeout = milliseconds(200),
                          .timeout = kTimeout,
                          .connections = 1,
                          .max_in_flight = max_in_flight,
                          .make_probe = {}};
    options.make_probe = [this] { return std::make_unique<Ping>(probe_); };
    Site site{.endpoint = {.host = "server", .port = 1, .path = {}},
              .credentials = std::move(credentials)};
    Node::Watcher& self = *this;
    return std::make_unique<Node>(loop_, site, std::move(options), *registry_, self);
  }
  FarEnd& Far() { return loop_.attempts.back()->far; }
  // The server is there, and has been greeted.
  void Greet() {
    loop_.attempts.back()->Accept();
    loop_.Turn();
    Far().Take();
    Far().Send(kGreeting);
    loop_.Turn();
  }
  void Send(Fate& fate) { SendBy(*node_, fate); }
  void SendBy(Node& node, Fate& fate) {
    auto call = std::make_unique<Ping>(fate);
    call->deadline = loop_.now().steady + kTimeout;
    node.Send(std::move(call));
  }
  // They outlive the node, which tells them of its end.
  std::vector<Fate>& NewFates(std::size_t count) { return fates_.emplace_back(count); }
  void OnTrouble(Node&) noexcept override { ++troubles_; }
  void OnReady(Node&) noexcept override {}

  Settings settings_;
  LoopUnderTest loop_;
  std::string heard_;
  std::unique_ptr<Registry> registry_;
  std::deque<std::vector<Fate>> fates_;
  Fate probe_;
  int troubles_ = 0;
  std::unique_ptr<Node> node_;
};

TEST_F(NodeTest, GreetsAndAsksWhatKindOfServerThisIs) {
  MakeNode(4, {.user = "weir", .password = "secret"});
  loop_.attempts.back()->Accept();
  loop_.Turn();
  const std::string greeting = Far().Take();
  EXPECT_EQ(greeting,
            "*3\r\n$4\r\nAUTH\r\n$4\r\nweir\r\n$6\r\nsecret\r\n"
            "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$4\r\nweir\r\n*1\r\n$4\r\nINFO\r\n");
  EXPECT_EQ(Far().user_timeout, 2 * kTimeout);
  Far().Send("+OK\r\n");
  EXPECT_FALSE(node_->is_ready());
  Far().Send(kGreeting);
  EXPECT_TRUE(node_->is_ready());
}

TEST_F(NodeTest, SendsWhatATurnGatheredInOnePiece) {
  MakeNode();
  Greet();
  Fate& first = NewFates(1)[0];
  Fate& second = NewFates(1)[0];
  Send(first);
  Send(second);
  EXPECT_EQ(Far().received, "");
  loop_.Turn();
  EXPECT_EQ(Far().Take(), std::string(kPing) + std::string(kPing));
  Far().Send("+PONG\r\n+PONG\r\n");
  EXPECT_TRUE(first.ended && second.ended);
}

TEST_F(NodeTest, QueuesWhatIsAskedBeforeTheServerIsThere) {
  MakeNode();
  Fate& fate = NewFates(1)[0];
  Send(fate);
  Greet();
  EXPECT_EQ(Far().Take(), kPing);
  Far().Send("+PO");
  EXPECT_FALSE(fate.ended);
  Far().Send("NG\r\n");
  EXPECT_TRUE(fate.ended);
  EXPECT_EQ(fate.end.kind, CallEnd::Kind::kAnswered);
}

TEST_F(NodeTest, BoundsWhatIsUnderWayAndWhatWaits) {
  MakeNode(/*max_in_flight=*/2);
  Greet();
  std::vector<Fate>& fates = NewFates(5);
  for (Fate& fate : fates) Send(fate);
  loop_.Turn();
  EXPECT_TRUE(fates[4].ended);
  EXPECT_EQ(fates[4].end.fault, StoreFault::kOverload);
  EXPECT_EQ(Far().Take(), std::string(kPing) + std::string(kPing));
  Far().Send("+PONG\r\n");
  loop_.Turn();
  EXPECT_EQ(Far().Take(), kPing);
}

TEST_F(NodeTest, EndsACallAtItsDeadlineAndSwallowsTheLateReply) {
  MakeNode();
  Greet();
  Fate& late = NewFates(1)[0];
  Send(late);
  loop_.Advance(milliseconds(49));
  EXPECT_FALSE(late.ended);
  Fate& next = NewFates(1)[0];
  Send(next);
  loop_.Advance(milliseconds(1));
  EXPECT_TRUE(late.ended);
  EXPECT_EQ(late.end.fault, StoreFault::kTimeout);
  EXPECT_EQ(late.end.error.code, ErrorCode::kDeadline);
  Far().Send("-ERR whatever\r\n");
  EXPECT_FALSE(next.ended);
  Far().Send("+PONG\r\n");
  EXPECT_TRUE(next.ended);
  EXPECT_EQ(next.end.kind, CallEnd::Kind::kAnswered);
}

TEST_F(NodeTest, DropsAConnectionThatHasBeenSilentForTooLong) {
  MakeNode();
  Greet();
  Fate& late = NewFates(1)[0];
  Send(late);
  loop_.Advance(kTimeout);
  EXPECT_FALSE(Far().closed);
  loop_.Advance(kTimeout);
  EXPECT_TRUE(Far().closed);
  EXPECT_EQ(troubles_, 1);
}

TEST_F(NodeTest, NeverRepeatsWhatMayHaveTakenEffect) {
  MakeNode();
  Greet();
  Fate& lost = NewFates(1)[0];
  Send(lost);
  loop_.Turn();
  Far().Break();
  EXPECT_TRUE(lost.ended);
  EXPECT_EQ(lost.end.fault, StoreFault::kLost);
  EXPECT_EQ(lost.end.error.code, ErrorCode::kDeadline);
  loop_.Advance(milliseconds(50));
  ASSERT_EQ(loop_.attempts.size(), 2U);
  Greet();
  EXPECT_EQ(Far().Take(), "");
}

TEST_F(NodeTest, SendsTheTextOfAScriptOnceForAllThatMissIt) {
  MakeNode();
  Greet();
  Fate& first = NewFates(1)[0];
  Fate& second = NewFates(1)[0];
  Send(first);
  Send(second);
  loop_.Turn();
  Far().Take();
  Far().Send("-NOSCRIPT No\r\n-NOSCRIPT No\r\n");
  loop_.Turn();
  EXPECT_EQ(Far().Take(), "*1\r\n$4\r\nTEXT\r\n" + std::string(kPing));
  // Forgotten again in between.
  Far().Send("+PONG\r\n-NOSCRIPT No\r\n");
  loop_.Turn();
  EXPECT_EQ(Far().Take(), "*1\r\n$4\r\nTEXT\r\n");
  Far().Send("+PONG\r\n");
  EXPECT_TRUE(first.ended && second.ended);
  EXPECT_EQ(second.end.kind, CallEnd::Kind::kAnswered);
}

TEST_F(NodeTest, FailsAtOnceWhileNoConnectionCanBeMadeAndRetriesEverLater) {
  MakeNode();
  Fate& waiting = NewFates(1)[0];
  Send(waiting);
  loop_.attempts.back()->Refuse();
  EXPECT_TRUE(waiting.ended);
  EXPECT_EQ(waiting.end.fault, StoreFault::kRefused);
  Fate& next = NewFates(1)[0];
  Send(next);
  EXPECT_TRUE(next.ended);
  for (int i = 0; i < 2; ++i) {
    loop_.Advance(milliseconds(200));
    loop_.attempts.back()->Refuse();
  }
  EXPECT_EQ(loop_.attempts.size(), 3U);
  EXPECT_FALSE(node_->record().breaker().IsClosed());
  Fate& broken = NewFates(1)[0];
  Send(broken);
  EXPECT_TRUE(broken.ended);
  EXPECT_EQ(broken.end.fault, StoreFault::kBreaker);
  // The next attempt is the probe, and what proves it is a call.
  for (int i = 0; i < 200 && loop_.attempts.size() < 4; ++i) loop_.Advance(milliseconds(10));
  ASSERT_EQ(loop_.attempts.size(), 4U);
  Greet();
  EXPECT_FALSE(node_->record().breaker().IsClosed());
  EXPECT_EQ(Far().Take(), kPing);
  Far().Send("+PONG\r\n");
  EXPECT_TRUE(node_->record().breaker().IsClosed());
}

TEST_F(NodeTest, AProbeThatTheServerRefusesLeavesTheBreakerOpen) {
  MakeNode(/*max_in_flight=*/64);
  Greet();
  std::vector<Fate>& fates = NewFates(20);
  for (Fate& fate : fates) Send(fate);
  loop_.Turn();
  Far().Take();
  for (int i = 0; i < 20; ++i) Far().Send("-OOM no memory\r\n");
  EXPECT_EQ(fates.back().end.fault, StoreFault::kNoMemory);
  ASSERT_FALSE(node_->record().breaker().IsClosed());
  loop_.Advance(seconds(1));
  EXPECT_EQ(Far().Take(), kPing);
  Far().Send("-OOM no memory\r\n");
  EXPECT_FALSE(node_->record().breaker().IsClosed());
  EXPECT_TRUE(probe_.ended);
}

// Whoever looks at the counts must learn why the server is left alone, and all others hear only
// that it is.
TEST_F(NodeTest, CountsWhyProbesFail) {
  const auto count = [&](StoreFault fault) {
    return node_->record().Report().faults[static_cast<std::size_t>(fault)];
  };
  MakeNode(/*max_in_flight=*/64);
  Greet();
  for (Fate& fate : NewFates(5)) Send(fate);
  loop_.Advance(kTimeout);
  ASSERT_FALSE(node_->record().breaker().IsClosed());
  EXPECT_EQ(count(StoreFault::kTimeout), 0U);  // Of calls, whoever made them counts it.
  for (int i = 0; i < 200 && loop_.attempts.size() < 2; ++i) loop_.Advance(milliseconds(10));
  Greet();
  ASSERT_EQ(Far().Take(), kPing);
  Far().Send("-READONLY no\r\n");
  EXPECT_EQ(count(StoreFault::kReadOnly), 1U);
  EXPECT_FALSE(node_->record().breaker().IsClosed());
  probe_ = {};
  for (int i = 0; i < 200 && !probe_.ended; ++i) loop_.Advance(milliseconds(10));
  EXPECT_TRUE(probe_.ended);
  EXPECT_EQ(count(StoreFault::kTimeout), 1U);
  EXPECT_EQ(count(StoreFault::kReadOnly), 1U);
}

// A server that greets whoever comes and answers nobody, as one whose writes are paused. Nobody's
// last attempt to connect has failed, so that calls are queued as soon as the breaker is closed.
TEST_F(NodeTest, ConnectsAtOnceWhenAnotherThreadFoundTheServerWell) {
  MakeNode(/*max_in_flight=*/64);
  Greet();
  const std::unique_ptr<Node> other = NewNode(/*max_in_flight=*/64, {});
  loop_.Advance(Duration(0));
  Greet();
  for (Fate& fate : NewFates(5)) Send(fate);
  for (Fate& fate : NewFates(5)) SendBy(*other, fate);
  loop_.Advance(2 * kTimeout);
  ASSERT_FALSE(node_->is_ready() || other->is_ready());
  Breaker& breaker = node_->record().breaker();
  ASSERT_FALSE(breaker.IsClosed());
  SendBy(*node_, NewFates(1)[0]);
  SendBy(*other, NewFates(1)[0]);

  // One of them probes, and the server has recovered.
  for (int i = 0; i < 200 && loop_.attempts.size() < 3; ++i) loop_.Advance(milliseconds(10));
  ASSERT_EQ(loop_.attempts.size(), 3U);
  Greet();
  Far().Send("+PONG\r\n");
  ASSERT_TRUE(breaker.IsClosed());
  ASSERT_NE(node_->is_ready(), other->is_ready());

  Fate& fate = NewFates(1)[0];
  SendBy(node_->is_ready() ? *other : *node_, fate);
  loop_.Advance(Duration(0));
  ASSERT_EQ(loop_.attempts.size(), 4U);
  Greet();
  EXPECT_EQ(Far().Take(), kPing);
  Far().Send("+PONG\r\n");
  EXPECT_TRUE(fate.ended);
  EXPECT_EQ(fate.end.kind, CallEnd::Kind::kAnswered);
  EXPECT_EQ(breaker.openings(), 1U);
}

TEST_F(NodeTest, GivesUpOnAServerThatDoesNotGreetBack) {
  MakeNode();
  loop_.attempts.back()->Accept();
  loop_.Turn();
  loop_.Advance(milliseconds(199));
  EXPECT_FALSE(Far().closed);
  loop_.Advance(milliseconds(1));
  EXPECT_TRUE(loop_.attempts.front()->far.closed);
}

TEST_F(NodeTest, IsNotLetInWithoutSayingAnySecret) {
  MakeNode(4, {.user = {}, .password = "secret"});
  Fate& fate = NewFates(1)[0];
  Send(fate);
  loop_.attempts.back()->Accept();
  loop_.Turn();
  Far().Send("-WRONGPASS invalid\r\n-NOAUTH x\r\n-NOAUTH y\r\n");
  EXPECT_TRUE(Far().closed);
  EXPECT_EQ(fate.end.fault, StoreFault::kCredentials);
  EXPECT_NE(heard_.find("WRONGPASS"), std::string::npos);
  EXPECT_EQ(heard_.find("secret"), std::string::npos);
}

TEST_F(NodeTest, DoesNotNeedRightsForItsNameOrForInfo) {
  MakeNode();
  loop_.attempts.back()->Accept();
  loop_.Turn();
  Far().Send("-NOPERM no 'client|setname'\r\n-NOPERM no 'info'\r\n");
  EXPECT_TRUE(node_->is_ready());
}

TEST_F(NodeTest, TriesAServerThatWasNotSeenBefore) {
  MakeNode();
  loop_.attempts.back()->Accept();
  loop_.Turn();
  Far().Take();
  Far().Send("+OK\r\n$33\r\nredis_version:7.0.15\r\nrun_id:abc1\r\n");
  loop_.Turn();
  EXPECT_EQ(Far().Take(), kPing);
  Far().Send("-NOPERM this user has no permissions to run the 'set' command\r\n");
  EXPECT_NE(heard_.find("missing rights: NOPERM this user has no permissions to run the 'set'"),
            std::string::npos)
      << heard_;
}

TEST_F(NodeTest, DoesNotUseAServerThatIsTooOld) {
  MakeNode();
  Fate& fate = NewFates(1)[0];
  Send(fate);
  loop_.attempts.back()->Accept();
  loop_.Turn();
  Far().Send("+OK\r\n$33\r\nredis_version:5.0.14\r\nrun_id:old1\r\n");
  EXPECT_TRUE(Far().closed);
  EXPECT_EQ(fate.end.fault, StoreFault::kOther);
  EXPECT_NE(heard_.find("5.0.14 is too old"), std::string::npos);
}

TEST_F(NodeTest, EndsAConnectionWhoseAnswersMakeNoSense) {
  for (const char* nonsense : {"+PANG\r\n", "garbage\r\n", ":1\r\n", "*99999999\r\n", "$-7\r\n",
                               "+PONG\r\n+PONG\r\n", ">1\r\n+x\r\n"}) {
    loop_.attempts.clear();
    MakeNode();
    Greet();
    Fate& fate = NewFates(1)[0];
    Send(fate);
    loop_.Turn();
    Far().Send(nonsense);
    EXPECT_TRUE(fate.ended) << nonsense;
    EXPECT_TRUE(Far().closed) << nonsense;
    node_ = nullptr;
  }
}

TEST_F(NodeTest, TakesRepliesInPiecesOfOneByte) {
  MakeNode();
  Greet();
  Fate& fate = NewFates(1)[0];
  Send(fate);
  loop_.Turn();
  for (const char c : std::string_view("+PONG\r\n")) Far().Send({&c, 1});
  EXPECT_EQ(fate.end.kind, CallEnd::Kind::kAnswered);
  EXPECT_TRUE(fate.ended);
}

TEST_F(NodeTest, WritesTheRestWhenThereIsRoomAgain) {
  MakeNode();
  Greet();
  Far().window = 3;
  Fate& fate = NewFates(1)[0];
  Send(fate);
  loop_.Turn();
  EXPECT_EQ(Far().received, kPing.substr(0, 3));
  Far().Open(1'000);
  EXPECT_EQ(Far().Take(), kPing);
}

TEST_F(NodeTest, EndsWhatIsUnderWayWhenItEnds) {
  MakeNode(/*max_in_flight=*/1);
  Greet();
  Fate& sent = NewFates(1)[0];
  Fate& queued = NewFates(1)[0];
  Send(sent);
  Send(queued);
  loop_.Turn();
  node_ = nullptr;
  EXPECT_TRUE(sent.ended);
  EXPECT_TRUE(queued.ended);
}

TEST_F(NodeTest, IsRenewedOnceWhatWasSentIsAnswered) {
  MakeNode();
  Greet();
  Fate& sent = NewFates(1)[0];
  Fate& waiting = NewFates(1)[0];
  Send(sent);
  loop_.Turn();
  node_->Renew();
  Send(waiting);
  loop_.Advance(Duration(0));
  FarEnd& old = Far();
  EXPECT_FALSE(old.closed);
  old.Send("+PONG\r\n");
  loop_.Advance(milliseconds(100));
  EXPECT_TRUE(old.closed);
}

// A replica answers those whom a limit denies, which takes no writing, and sends others away.
TEST_F(NodeTest, BacksOffFromAServerThatAnswersSomeOfItsCalls) {
  MakeNode();
  const auto answer_one_and_renew = [&] {
    Greet();
    Send(NewFates(1)[0]);
    loop_.Turn();
    Far().Send("+PONG\r\n");
    node_->Renew();
    loop_.Advance(Duration(0));
    ASSERT_TRUE(Far().closed);
  };
  answer_one_and_renew();
  for (Duration spent{}; spent < seconds(10); spent += milliseconds(1)) {
    const std::size_t before = loop_.attempts.size();
    loop_.Advance(milliseconds(1));
    if (loop_.attempts.size() > before) answer_one_and_renew();
  }
  // A second apart at the most, half of that on average.
  EXPECT_LE(loop_.attempts.size(), 40U);
  EXPECT_GE(loop_.attempts.size(), 10U);
  // Whoever would wait for longer than he can is told at once.
  while (loop_.attempts.back()->far.closed && node_->IsSettled() == false) {
    loop_.Advance(milliseconds(1));
  }
  Fate& told = NewFates(1)[0];
  Send(told);
  EXPECT_TRUE(told.ended);
  EXPECT_EQ(told.end.fault, StoreFault::kReadOnly);
}

TEST_F(NodeTest, BeginsBackOffAnewOnceAConnectionLasted) {
  MakeNode();
  for (int round = 0; round < 8; ++round) {
    Greet();
    loop_.Advance(seconds(1));
    Send(NewFates(1)[0]);
    loop_.Turn();
    Far().Send("+PONG\r\n");
    const std::size_t before = loop_.attempts.size();
    node_->Renew();
    loop_.Advance(milliseconds(51));
    EXPECT_EQ(loop_.attempts.size(), before + 1) << "round " << round;
  }
}

}  // namespace
}  // namespace weir::redis
