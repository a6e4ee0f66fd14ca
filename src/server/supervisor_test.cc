#include "server/supervisor.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

// The other end: a socket that datagrams arrive at.
class Receiver {
 public:
  explicit Receiver(std::string name)
      : name_(std::move(name)), fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_.starts_with('@')) address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver() {
    close(fd_);
    if (name_.starts_with('/')) unlink(name_.c_str());
  }

  const std::string& name() const { return name_; }
  // What came first of what was not taken yet.
  std::string Take() const {
    std::array<char, 4096> room;
    const ssize_t size = recv(fd_, room.data(), room.size(), 0);
    return size < 0 ? "nothing" : std::string(room.data(), static_cast<std::size_t>(size));
  }

 private:
  const std::string name_;
  const int fd_;
};

std::string UniqueName() { return "weir-supervisor-test-" + std::to_string(getpid()); }

class SupervisorTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
  static void Set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
};

TEST_F(SupervisorTest, IsNobodyIfNobodyIsNamed) {
  const auto nobody = Supervisor::FromEnvironment();
  ASSERT_TRUE(nobody);
  EXPECT_TRUE(nobody->Ready("well"));
  EXPECT_FALSE(nobody->alive_every());
}

TEST_F(SupervisorTest, IsToldByPathAndByName) {
  const std::string path = std::filesystem::temp_directory_path() / UniqueName();
  for (const std::string& name : {path, "@" + UniqueName()}) {
    const Receiver receiver(name);
    Set("NOTIFY_SOCKET", name);
    const auto supervisor = Supervisor::FromEnvironment();
    ASSERT_TRUE(supervisor) << name;
    EXPECT_TRUE(supervisor->Ready("serving\nREADY=0"));
    EXPECT_EQ(receiver.Take(), "READY=1\nSTATUS=serving READY=0") << "a line stays a line";
    EXPECT_TRUE(supervisor->Reloading(SteadyTime(std::chrono::microseconds(1234))));
    EXPECT_EQ(receiver.Take(), "RELOADING=1\nMONOTONIC_USEC=1234");
    EXPECT_TRUE(supervisor->Alive());
    EXPECT_EQ(receiver.Take(), "WATCHDOG=1");
    EXPECT_TRUE(supervisor->Stopping());
    EXPECT_EQ(receiver.Take().substr(0, 11), "STOPPING=1\n");
  }
}

TEST_F(SupervisorTest, IsTakenOutOfTheEnvironment) {
  Set("NOTIFY_SOCKET", "@" + UniqueName());
  Set("WATCHDOG_USEC", "1000000");
  Set("WATCHDOG_PID", std::to_string(getpid()));
  ASSERT_TRUE(Supervisor::FromEnvironment());
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    EXPECT_EQ(std::getenv(name), nullptr) << name;
  }
}

TEST_F(SupervisorTest, ThatHasGoneIsNoReasonToFail) {
  Set("NOTIFY_SOCKET", "@" + UniqueName());
  const auto supervisor = Supervisor::FromEnvironment();
  ASSERT_TRUE(supervisor);
  EXPECT_FALSE(supervisor->Ready("well"));
}

TEST_F(SupervisorTest, RefusesSocketsOfOtherKinds) {
  for (const std::string& name : {std::string("vsock:2:1234"), std::string("relative"),
                                  std::string("/"), "/" + std::string(200, 'x')}) {
    Set("NOTIFY_SOCKET", name);
    EXPECT_FALSE(Supervisor::FromEnvironment()) << name;
  }
}

TEST_F(SupervisorTest, WantsToHearTwiceInItsPatience) {
  const auto every = [](const char* patience, const std::string& pid) {
    Set("NOTIFY_SOCKET", "@" + UniqueName());
    Set("WATCHDOG_USEC", patience);
    Set("WATCHDOG_PID", pid);
    return Supervisor::FromEnvironment()->alive_every();
  };
  const std::string own = std::to_string(getpid());
  EXPECT_EQ(every("30000000", own), std::chrono::seconds(15));
  EXPECT_EQ(every("30000000", ""), std::chrono::seconds(15));
  EXPECT_FALSE(every("30000000", "1")) << "another process is meant";
  EXPECT_FALSE(every("0", own));
  EXPECT_FALSE(every("", own));
  EXPECT_FALSE(every("-5", own));
  EXPECT_FALSE(every("99999999999999999999999", own));
  EXPECT_GT(every("18446744073709551615", own), Duration(0)) << "too long, but no negative time";
}

}  // namespace
}  // namespace weir
