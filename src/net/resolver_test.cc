// threads
#include "net/resolver.h"

#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/loop_under_test.h"

namespace weir {
namespace {

// Answers with the host's name as the error, one name for each time it is let go on; names of a
// host that begins with "hangs" only when those are.
struct SlowNames {
  Resolver::Addresses LookUp(const Endpoint& endpoint) {
    begun.release();
    (endpoint.host.starts_with("hangs") ? hung_go_on : go_on).acquire();
    ++lookups;
    return std::unexpected(Error{ErrorCode::kNotFound, endpoint.host});
  }
  std::counting_semaphore<> begun{0};
  std::counting_semaphore<> go_on{0};
  std::counting_semaphore<> hung_go_on{0};
  std::atomic<int> lookups = 0;
};

class ResolverTest : public testing::Test {
 protected:
  // Threads of a resolver may still answer.
  ~ResolverTest() override { mailbox_->Close(); }

  std::unique_ptr<Resolver::Question> Ask(const std::string& host) { return Ask(resolver_, host); }
  std::unique_ptr<Resolver::Question> Ask(Resolver& resolver, const std::string& host) {
    return resolver.Ask(
        {.host = host, .port = 1}, mailbox_,
        [this](const Resolver::Addresses& found) { answers_ += found.error().message + ' '; });
  }
  void TurnUntil(const std::string& answers) {
    while (answers_ != answers && answers_.size() <= answers.size()) {
      loop_.Turn();
      std::this_thread::yield();
    }
    EXPECT_EQ(answers_, answers);
  }

  // Never ended: its threads stay.
  Resolver& NewResolver(std::size_t threads) {
    static auto& kept = *new std::vector<Resolver*>;
    kept.push_back(
        new Resolver([&names = names_](const Endpoint& e) { return names.LookUp(e); }, threads));
    return *kept.back();
  }

  SlowNames& names_ = *new SlowNames;
  Resolver& resolver_ = NewResolver(1);
  LoopUnderTest loop_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(loop_);
  std::string answers_;
};

TEST_F(ResolverTest, AnswersInALaterTurnAndOneNameAfterTheOther) {
  const auto a = Ask("a");
  const auto b = Ask("b");
  names_.go_on.release(2);
  EXPECT_EQ(answers_, "");
  TurnUntil("a b ");
}

TEST_F(ResolverTest, AnswersAllWhoWaitForTheSameNameAtOnce) {
  const auto first = Ask("first");
  names_.begun.acquire();
  const auto a = Ask("same");
  const auto b = Ask("same");
  const auto c = Ask("same");
  names_.go_on.release(2);
  TurnUntil("first same same same ");
  EXPECT_EQ(names_.lookups, 2);
}

TEST_F(ResolverTest, AnswersOtherNamesWhileOneHangs) {
  Resolver& resolver = NewResolver(Resolver::kMostThreads);
  // As those do who try again and again to reach a server of that name.
  std::vector<std::unique_ptr<Resolver::Question>> hang;
  for (std::size_t i = 0; i < 2 * Resolver::kMostThreads; ++i) {
    hang.push_back(Ask(resolver, "hangs"));
    if (i % 2 == 0) hang.back().reset();
  }
  names_.begun.acquire();
  const auto a = Ask(resolver, "a");
  names_.go_on.release();
  TurnUntil("a ");
  const auto b = Ask(resolver, "b");
  names_.go_on.release();
  TurnUntil("a b ");
  EXPECT_EQ(names_.lookups, 2);
  // Those who asked while it was looked up are answered by that.
  hang.erase(hang.begin() + 2, hang.end());
  names_.hung_go_on.release();
  TurnUntil("a b hangs ");
}

TEST_F(ResolverTest, LooksUpNoMoreNamesAtATimeThanItHasThreads) {
  Resolver& resolver = NewResolver(2);
  const auto first = Ask(resolver, "hangs");
  const auto second = Ask(resolver, "hangs too");
  names_.begun.acquire();
  names_.begun.acquire();
  const auto third = Ask(resolver, "third");
  names_.go_on.release();
  EXPECT_FALSE(names_.begun.try_acquire());
  names_.hung_go_on.release();
  names_.begun.acquire();
  while (names_.lookups < 2) std::this_thread::yield();
  names_.hung_go_on.release();
}

TEST_F(ResolverTest, TellsNothingToWhoHasEndedTheQuestion) {
  auto ended = Ask("ended");
  names_.begun.acquire();
  auto never_looked_up = Ask("never");
  const auto kept = Ask("kept");
  ended.reset();
  never_looked_up.reset();
  names_.go_on.release(2);
  TurnUntil("kept ");
  EXPECT_EQ(names_.lookups, 2);
}

TEST_F(ResolverTest, RefusesMoreThanItHasRoomForAndForgetsWhoHasGone) {
  const auto first = Ask("first");
  names_.begun.acquire();
  std::vector<std::unique_ptr<Resolver::Question>> waiting;
  for (std::size_t i = 1; i < Resolver::kMostWaiting; ++i) waiting.push_back(Ask("b"));
  const auto refused = Ask("c");
  TurnUntil("too many names are being looked up already ");
  waiting.clear();
  const auto taken = Ask("d");
  names_.go_on.release(2);
  TurnUntil("too many names are being looked up already first d ");
}

TEST_F(ResolverTest, MayAnswerWhenTheLoopHasGone) {
  const auto a = Ask("a");
  names_.begun.acquire();
  mailbox_->Close();
  const auto b = Ask("b");
  names_.go_on.release(2);
  names_.begun.acquire();
  while (names_.lookups < 2) std::this_thread::yield();
  loop_.Turn();
  EXPECT_EQ(answers_, "");
}

TEST(Addresses, OfNumbersAndPathsNeedNoLookup) {
  EXPECT_EQ(AddressWithoutLookup({.host = "203.0.113.9", .port = 1})->ToText(), "203.0.113.9");
  EXPECT_EQ(AddressWithoutLookup({.host = "2001:db8::1", .port = 1})->ToText(), "2001:db8::1");
  EXPECT_EQ(AddressWithoutLookup({.host = "::ffff:192.0.2.1", .port = 1})->ToText(), "192.0.2.1");
  EXPECT_EQ(AddressWithoutLookup({.path = "/tmp/x"})->ToText(), "");
  EXPECT_FALSE(AddressWithoutLookup({.host = "localhost", .port = 1}));
}

}  // namespace
}  // namespace weir
