#include "server/passed_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Sockets as a service manager passes them: in descriptors from 3 on. Whatever a test runs with
// there is put back at the end.
class Passed : public testing::Test {
 protected:
  static constexpr int kFirst = 3;
  static constexpr int kRoom = 4;

  void SetUp() override {
    for (int i = 0; i < kRoom; ++i) before_.push_back(fcntl(kFirst + i, F_DUPFD_CLOEXEC, 100));
    // So that nothing else that is opened gets there.
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < kRoom; ++i) dup2(nothing, kFirst + i);
  }
  void TearDown() override {
    for (int i = 0; i < kRoom; ++i) {
      if (before_[static_cast<std::size_t>(i)] < 0) {
        close(kFirst + i);
      } else {
        dup2(before_[static_cast<std::size_t>(i)], kFirst + i);
        close(before_[static_cast<std::size_t>(i)]);
      }
    }
    for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  }

  // Opens one as its owner would, and puts a copy of it where the next is passed. Where it is.
  Endpoint Pass(const std::string& address) {
    Result<ListeningSocket> opened = ListeningSocket::Open(*Endpoint::Parse(address));
    EXPECT_TRUE(opened) << address;
    dup2(opened->fd(), kFirst + passed_++);
    const Endpoint endpoint = opened->endpoint();
    if (!endpoint.is_unix()) return endpoint;
    owners_.push_back(std::move(*opened));  // Whose end would remove the path.
    return endpoint;
  }
  void Announce(const std::string& names, const std::string& pid = std::to_string(getpid())) {
    setenv("LISTEN_PID", pid.c_str(), 1);
    setenv("LISTEN_FDS", std::to_string(passed_).c_str(), 1);
    setenv("LISTEN_FDNAMES", names.c_str(), 1);
  }

  int passed_ = 0;
  std::vector<int> before_;
  std::vector<ListeningSocket> owners_;
};

const Endpoint kElsewhere{.host = "127.0.0.1", .port = 1};

TEST_F(Passed, AreNoneIfNobodySaysSo) {
  auto sockets = PassedSockets::FromEnvironment();
  ASSERT_TRUE(sockets);
  EXPECT_FALSE(sockets->Take("http", kElsewhere));
  EXPECT_THAT(sockets->left(), IsEmpty());
}

TEST_F(Passed, AreFoundByTheirNames) {
  const Endpoint http = Pass("127.0.0.1:0");
  const Endpoint resp = Pass("127.0.0.1:0");
  Announce("resp:http");  // Not in the order in which they are asked for.
  auto sockets = PassedSockets::FromEnvironment();
  ASSERT_TRUE(sockets);
  const auto taken = sockets->Take("http", kElsewhere);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->endpoint().port, resp.port);
  EXPECT_TRUE(taken->is_kept());
  EXPECT_THAT(sockets->left(), ElementsAre("resp " + http.ToString()));
  EXPECT_FALSE(sockets->Take("http", kElsewhere)) << "it is taken";
}

TEST_F(Passed, AreFoundByTheirAddresses) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("weir-passed-" + std::to_string(getpid()));
  const Endpoint one = Pass("127.0.0.1:0");
  const Endpoint two = Pass("[::1]:0");
  const Endpoint three = Pass("unix:" + path);
  Announce("weir.socket:weir.socket:weir.socket");
  auto sockets = PassedSockets::FromEnvironment();
  ASSERT_TRUE(sockets);
  EXPECT_FALSE(sockets->Take("http", kElsewhere));
  const auto second = sockets->Take("http", two);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->endpoint().ToString(), two.ToString());
  const auto third = sockets->Take("resp", three);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->endpoint().path, path);
  EXPECT_THAT(sockets->left(), ElementsAre("weir.socket " + one.ToString()));
}

TEST_F(Passed, NamedForOneProtocolAreNotTakenByAnother) {
  const Endpoint one = Pass("127.0.0.1:0");
  Announce("resp");
  auto sockets = PassedSockets::FromEnvironment();
  ASSERT_TRUE(sockets);
  EXPECT_FALSE(sockets->Take("http", one));
  EXPECT_TRUE(sockets->Take("resp", kElsewhere));
}

TEST_F(Passed, ToAnotherProcessAreLeftAlone) {
  Pass("127.0.0.1:0");
  Announce("http", "1");
  auto sockets = PassedSockets::FromEnvironment();
  ASSERT_TRUE(sockets);
  EXPECT_FALSE(sockets->Take("http", kElsewhere));
  EXPECT_NE(fcntl(kFirst, F_GETFD), -1) << "it stays open";
  EXPECT_EQ(std::getenv("LISTEN_FDS"), nullptr) << "whoever it was for, it is nobody's after us";
}

TEST_F(Passed, MustBeSocketsThatListen) {
  // A datagram socket, one that is connected to nobody and does not listen, and a pipe.
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  for (const int fd : {socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET, SOCK_STREAM, 0), ends[0]}) {
    dup2(fd, kFirst);
    close(fd);
    passed_ = 1;
    Announce("http");
    const auto sockets = PassedSockets::FromEnvironment();
    ASSERT_FALSE(sockets);
    EXPECT_THAT(sockets.error().message, HasSubstr("\"http\": descriptor 3 is not a socket"));
  }
  close(ends[1]);
  // And one that is not there.
  close(kFirst);
  Announce("http");
  EXPECT_FALSE(PassedSockets::FromEnvironment());
}

TEST_F(Passed, AreCountedByANumber) {
  for (const char* count : {"x", "-1", "4294967299", "99999999999999999999"}) {
    Announce("");
    setenv("LISTEN_FDS", count, 1);
    EXPECT_FALSE(PassedSockets::FromEnvironment()) << count;
  }
}

TEST_F(Passed, WithoutNamesAreUnknown) {
  const Endpoint one = Pass("127.0.0.1:0");
  const Endpoint two = Pass("127.0.0.1:0");
  Announce("");
  auto sockets = PassedSockets::FromEnvironment();
  ASSERT_TRUE(sockets);
  EXPECT_THAT(sockets->left(),
              ElementsAre("unknown " + one.ToString(), "unknown " + two.ToString()));
}

TEST_F(Passed, AreSharedByThreadsAndNeverShut) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("weir-kept-" + std::to_string(getpid()));
  Pass("unix:" + path);
  Announce("resp");
  auto sockets = PassedSockets::FromEnvironment();
  {
    const auto taken = sockets->Take("resp", kElsewhere);
    const auto another = taken->Another();
    ASSERT_TRUE(another);
    EXPECT_TRUE(another->is_kept());
    EXPECT_EQ(another->endpoint().path, path);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace weir
