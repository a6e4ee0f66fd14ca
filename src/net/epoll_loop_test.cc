// threads
#include "net/epoll_loop.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "net/loopback_under_test.h"

namespace weir {
namespace {

// One end of a connection: keeps what it reads, and may answer.
class Peer final : public StreamHandler {
 public:
  explicit Peer(std::function<void(Peer&)> on_change = {}) : on_change_(std::move(on_change)) {}

  void Take(std::unique_ptr<Stream> its_stream) {
    stream = std::move(its_stream);
    stream->SetHandler(*this);
    stream->Read(room_);
  }
  void OnRead(std::size_t count) noexcept override {
    if (count == 0) ended = true;
    text.append(room_.data(), count);
    if (!ended && reads_on) stream->Read(room_);
    if (on_change_) on_change_(*this);
  }
  void OnHangUp() noexcept override {
    hung_up = true;
    if (on_change_) on_change_(*this);
  }
  void OnWritable() noexcept override {
    writable = true;
    if (on_change_) on_change_(*this);
  }
  void OnBroken() noexcept override {
    ended = true;
    if (on_change_) on_change_(*this);
  }

  std::unique_ptr<Stream> stream;
  std::string text;
  bool ended = false;
  bool writable = false;
  bool hung_up = false;
  bool reads_on = true;

 private:
  std::function<void(Peer&)> on_change_;
  std::array<char, 64> room_{};
};

std::string UnixPath() { return testing::TempDir() + "weir-" + std::to_string(getpid()) + ".sock"; }

TEST(EpollLoop, CarriesBytesBothWaysAndTheEnd) {
  EpollLoop loop(SystemClock::Shared());
  Peer server([](Peer& self) {
    if (self.text == "ping") std::ignore = self.stream->Write("pong");
  });
  Peer client([&](Peer& self) {
    if (self.text == "pong") loop.Stop();
  });
  ListeningSocket socket = OnLoopback();
  const Endpoint endpoint = socket.endpoint();
  const auto acceptor =
      loop.Accept(std::move(socket), [&](std::unique_ptr<Stream> s) { server.Take(std::move(s)); });
  std::unique_ptr<Stream> connecting = loop.Connect(endpoint, [&](const Result<void>& done) {
    ASSERT_TRUE(done);
    client.Take(std::move(connecting));
    EXPECT_EQ(client.stream->Write("ping"), 4U);
  });
  loop.Run();
  EXPECT_EQ(server.text, "ping");
  EXPECT_EQ(server.stream->peer(), "127.0.0.1");
}

TEST(EpollLoop, CarriesBytesOverAUnixSocket) {
  EpollLoop loop(SystemClock::Shared());
  Peer server([&](Peer& self) {
    if (self.text == "ping") loop.Stop();
  });
  const Endpoint endpoint{.path = UnixPath()};
  auto socket = ListeningSocket::Open(endpoint);
  ASSERT_TRUE(socket) << socket.error().message;
  const auto acceptor = loop.Accept(std::move(*socket),
                                    [&](std::unique_ptr<Stream> s) { server.Take(std::move(s)); });
  const std::unique_ptr<Stream> client = loop.Connect(endpoint, [&](const Result<void>& done) {
    EXPECT_TRUE(done && client->Write("ping") == 4U);
  });
  loop.Run();
  EXPECT_EQ(server.stream->peer(), "");
}

TEST(EpollLoop, SaysThatThereIsNoSuchUnixSocket) {
  EpollLoop loop(SystemClock::Shared());
  std::string message;
  const auto stream =
      loop.Connect(Endpoint{.path = UnixPath() + ".none"}, [&](const Result<void>& done) {
        if (!done) message = done.error().message;
        loop.Stop();
      });
  EXPECT_EQ(message, "") << "in a later turn";
  loop.Run();
  EXPECT_EQ(message, "No such file or directory");
}

TEST(EpollLoop, KnowsAPeerByItsIpv6Address) {
  auto socket = ListeningSocket::Open(*Endpoint::Parse("[::1]:0"));
  if (!socket) GTEST_SKIP() << "no IPv6 here: " << socket.error().message;
  EpollLoop loop(SystemClock::Shared());
  const Endpoint endpoint = socket->endpoint();
  std::string peer;
  const auto acceptor = loop.Accept(std::move(*socket), [&](std::unique_ptr<Stream> stream) {
    peer = stream->peer();
    loop.Stop();
  });
  const auto stream = loop.Connect(endpoint, [](const Result<void>&) {});
  loop.Run();
  EXPECT_EQ(peer, "::1");
}

TEST(EpollLoop, TellsOfTheEndOfAStream) {
  EpollLoop loop(SystemClock::Shared());
  Peer server([&](Peer& self) {
    if (self.ended) loop.Stop();
  });
  ListeningSocket socket = OnLoopback();
  const Endpoint endpoint = socket.endpoint();
  const auto acceptor =
      loop.Accept(std::move(socket), [&](std::unique_ptr<Stream> s) { server.Take(std::move(s)); });
  std::unique_ptr<Stream> stream = loop.Connect(endpoint, [&](const Result<void>&) {
    std::ignore = stream->Write("last words");
    stream->FinishWriting();
  });
  loop.Run();
  EXPECT_EQ(server.text, "last words");
}

TEST(EpollLoop, TellsOfAHangUpWhileNothingIsRead) {
  EpollLoop loop(SystemClock::Shared());
  Peer server([&](Peer& self) {
    if (self.hung_up) loop.Stop();
  });
  server.reads_on = false;
  ListeningSocket socket = OnLoopback();
  const Endpoint endpoint = socket.endpoint();
  const auto acceptor =
      loop.Accept(std::move(socket), [&](std::unique_ptr<Stream> s) { server.Take(std::move(s)); });
  std::unique_ptr<Stream> stream = loop.Connect(endpoint, [&](const Result<void>&) {
    std::ignore = stream->Write(std::string(200, 'x'));
    stream->FinishWriting();
  });
  loop.Run();
  EXPECT_EQ(server.text.size(), 64U) << "only what was asked for";
}

TEST(EpollLoop, SaysWhenMoreCanBeWritten) {
  EpollLoop loop(SystemClock::Shared());
  Peer reader;
  std::unique_ptr<Stream> held;
  bool connected = false;
  Peer writer([&](Peer& self) {
    if (self.writable) loop.Stop();
  });
  ListeningSocket socket = OnLoopback();
  const Endpoint endpoint = socket.endpoint();
  const auto acceptor = loop.Accept(std::move(socket), [&](std::unique_ptr<Stream> s) {
    writer.Take(std::move(s));
    const std::string much(1 << 20, 'x');
    while (writer.stream->Write(much).value_or(0) > 0) {
    }
    writer.stream->AwaitWritable();
    if (connected) reader.Take(std::move(held));  // Only now does anybody read.
  });
  held = loop.Connect(endpoint, [&](const Result<void>&) {
    connected = true;
    if (writer.stream) reader.Take(std::move(held));
  });
  loop.Run();
  EXPECT_TRUE(writer.writable);
  EXPECT_GT(reader.text.size(), 0U);
}

TEST(EpollLoop, SaysThatNobodyListens) {
  EpollLoop loop(SystemClock::Shared());
  const Endpoint endpoint = OnLoopback().endpoint();  // Closed again.
  bool failed = false;
  const auto stream = loop.Connect(endpoint, [&](const Result<void>& done) {
    failed = !done;
    loop.Stop();
  });
  loop.Run();
  EXPECT_TRUE(failed);
}

TEST(EpollLoop, ForgetsAnAttemptThatWasEnded) {
  EpollLoop loop(SystemClock::Shared());
  const Endpoint endpoint = OnLoopback().endpoint();
  auto stream = loop.Connect(endpoint, [](const Result<void>&) { FAIL(); });
  stream.reset();
  loop.Post([&] { loop.Post([&] { loop.Stop(); }); });
  loop.Run();
}

TEST(EpollLoop, LooksNamesUp) {
  EpollLoop loop(SystemClock::Shared());
  ListeningSocket socket = OnLoopback();
  Endpoint endpoint = socket.endpoint();
  endpoint.host = "localhost";
  const auto acceptor = loop.Accept(std::move(socket), [](std::unique_ptr<Stream>) {});
  std::string outcome;
  const auto stream = loop.Connect(endpoint, [&](const Result<void>& done) {
    outcome = done ? "connected" : done.error().message;
    loop.Stop();
  });
  EXPECT_EQ(outcome, "") << "in a later turn";
  loop.Run();
  EXPECT_EQ(outcome, "connected");
  EXPECT_EQ(stream->peer(), "127.0.0.1");
}

TEST(EpollLoop, SaysThatThereIsNoSuchName) {
  EpollLoop loop(SystemClock::Shared());
  std::string message;
  const auto stream =
      loop.Connect(Endpoint{.host = "x.invalid", .port = 1}, [&](const Result<void>& done) {
        if (!done) message = done.error().message;
        loop.Stop();
      });
  loop.Run();
  // Depends on whether there is a name server to ask.
  EXPECT_TRUE(message == "Name or service not known" ||
              message == "Temporary failure in name resolution")
      << message;
}

TEST(EpollLoop, MayEndWhileANameIsBeingLookedUp) {
  for (int i = 0; i < 20; ++i) {
    EpollLoop loop(SystemClock::Shared());
    auto stream = loop.Connect(Endpoint{.host = "localhost", .port = 1},
                               [](const Result<void>&) { ADD_FAILURE() << "was ended before"; });
    if (i % 2 == 0) {
      stream.reset();
      loop.Post([&] { loop.Post([&] { loop.Stop(); }); });
      loop.Run();
    }
  }
}

// Counts how often it is told, and may ask again.
class Told final : public TurnEnd {
 public:
  explicit Told(std::function<void()> then) : then_(std::move(then)) {}
  void OnTurnEnd() noexcept override {
    ++count;
    then_();
  }
  int count = 0;

 private:
  std::function<void()> then_;
};

TEST(EpollLoop, TellsOfTheEndOfATurnOnceHoweverOftenItWasAskedFor) {
  EpollLoop loop(SystemClock::Shared());
  std::string order;
  Told first([&] { order += 'a'; });
  Told second([&] { order += 'b'; });
  loop.Post([&] {
    loop.AtTurnEnd(first);
    loop.AtTurnEnd(second);
    loop.AtTurnEnd(first);
    order += '1';
  });
  loop.Post([&] { order += '2'; });  // Of the same turn.
  loop.Post([&] {
    loop.Post([&] {
      order += '3';
      loop.Stop();
    });
  });
  loop.Run();
  EXPECT_EQ(order, "12ab3") << "when all else of the turn is done, and never again";
}

TEST(EpollLoop, TellsThoseAddedAtTheEndOfATurnBeforeItWaits) {
  EpollLoop loop(SystemClock::Shared());
  Told added([&] { loop.Stop(); });
  Told adding([&] { loop.AtTurnEnd(added); });
  loop.Post([&] { loop.AtTurnEnd(adding); });
  loop.Run();  // Without an end if it waited: nothing else would wake it.
  EXPECT_EQ(adding.count, 1);
  EXPECT_EQ(added.count, 1);
}

TEST(EpollLoop, DoesNotTellWhoAskedToBeForgotten) {
  EpollLoop loop(SystemClock::Shared());
  Told forgotten([] {});
  Told other([&] { loop.ForgetTurnEnd(forgotten); });  // Before its turn comes.
  auto gone = std::make_unique<Told>([] { ADD_FAILURE() << "has ended"; });
  loop.Post([&] {
    loop.AtTurnEnd(*gone);
    loop.AtTurnEnd(other);
    loop.AtTurnEnd(forgotten);
    loop.ForgetTurnEnd(*gone);
    gone.reset();
    loop.Post([&] { loop.Stop(); });
  });
  loop.Run();
  EXPECT_EQ(other.count, 1);
  EXPECT_EQ(forgotten.count, 0);
}

TEST(EpollLoop, RunsTimersInTheirOrderAndNotThoseStopped) {
  EpollLoop loop(SystemClock::Shared());
  std::string order;
  const auto late = loop.MakeTimer([&] {
    order += 'b';
    loop.Stop();
  });
  const auto early = loop.MakeTimer([&] { order += 'a'; });
  const auto stopped = loop.MakeTimer([&] { order += 'x'; });
  late->Start(std::chrono::milliseconds(30));
  early->Start(std::chrono::hours(1));
  early->Start(std::chrono::milliseconds(10));  // The start before is forgotten.
  stopped->Start(std::chrono::milliseconds(1));
  stopped->Stop();
  loop.Run();
  EXPECT_EQ(order, "ab");
}

TEST(EpollLoop, HasOneTimeForATurnAndAnotherForTheNext) {
  EpollLoop loop(SystemClock::Shared());
  Now first{};
  loop.Post([&] {
    first = loop.now();
    while (loop.ReadClock().steady == first.steady) {
    }
    EXPECT_EQ(loop.now().steady, first.steady);
    loop.Post([&] {
      EXPECT_GT(loop.now().steady, first.steady);
      loop.Stop();
    });
  });
  loop.Run();
}

TEST(EpollLoop, TakesTasksFromOtherThreads) {
  EpollLoop loop(SystemClock::Shared());
  int done = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) {
      loop.Post([&] {
        if (++done == 1000) loop.Stop();
      });
    }
  });
  loop.Run();
  other.join();
  EXPECT_EQ(done, 1000);
}

TEST(ListeningSocket, IsRefusedWhereSomebodyListens) {
  const ListeningSocket first = OnLoopback();
  const Result<ListeningSocket> second = ListeningSocket::Open(first.endpoint());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
  EXPECT_TRUE(first.Another());  // But the same service may have several.
}

TEST(ListeningSocket, KnowsWhetherItIsOnLoopback) {
  EXPECT_TRUE(OnLoopback().is_loopback());
  const auto everywhere = ListeningSocket::Open(*Endpoint::Parse("0.0.0.0:0"));
  ASSERT_TRUE(everywhere);
  EXPECT_FALSE(everywhere->is_loopback());
}

TEST(ListeningSocket, NamesTheCallThatFailsWithoutADescriptor) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const Endpoint& endpoint : {Endpoint{.path = UnixPath()}, *Endpoint::Parse("127.0.0.1:0")}) {
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto opened = ListeningSocket::Open(endpoint);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(opened);
    EXPECT_TRUE(opened.error().message.contains(": socket: Too many open files"))
        << opened.error().message;
  }
}

TEST(ListeningSocket, ReplacesAnAbandonedUnixSocketOnly) {
  const std::string path = UnixPath();
  const Endpoint endpoint{.path = path};
  {
    const auto first = ListeningSocket::Open(endpoint);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_FALSE(ListeningSocket::Open(endpoint)) << "somebody listens there";
    EXPECT_TRUE(first->Another());
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    // As after a crash: the socket stays, its owner is gone.
    EXPECT_EQ(rename(path.c_str(), (path + ".kept").c_str()), 0);
  }
  EXPECT_EQ(rename((path + ".kept").c_str(), path.c_str()), 0);
  {
    EXPECT_TRUE(ListeningSocket::Open(endpoint));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "removed at the end";
}

}  // namespace
}  // namespace weir
