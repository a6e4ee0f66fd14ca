#include "server/serve_check.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/listening_socket.h"
#include "store/redis/servers_under_test.h"

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct RanCheck {
  int code;
  std::string out;
};

class ServeCheck : public testing::Test {
 protected:
  ServeCheck()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ServeCheck() override { std::filesystem::remove_all(folder_); }

  RanCheck Check(const std::string& policy) const {
    const std::string file = folder_ / "weir.yaml";
    std::ofstream(file) << policy << "rules:\n  - { name: all, key: ip, limit: 5/min }\n";
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunServeCheck({.policy_file = file}, {.in = in, .out = out, .err = err});
    return {.code = code, .out = out.str()};
  }

  const std::filesystem::path folder_;
};

constexpr const char* kFree = "listen: { http: 127.0.0.1:0, resp: 127.0.0.1:0 }\n";

TEST_F(ServeCheck, IsSilentIfAllIsWell) {
  const RanCheck ran = Check(kFree);
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.out, (folder_ / "weir.yaml").string() + ": would start, 1 rule\n");
}

TEST_F(ServeCheck, TellsWhatIsWrongWithThePolicy) {
  const RanCheck ran = Check("reset: sometimes\n");
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("weir.yaml:1:8: E"), HasSubstr("1 error, 0 warnings")));
}

TEST_F(ServeCheck, TellsOfAllListenersThatCannotBeOpened) {
  const RanCheck ran = Check(
      "listen:\n  http: 192.0.2.1:8080\n"
      "  resp: { address: '127.0.0.1:0', token: 'env:WEIR_HAS_NO_SUCH' }\n");
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("error: listen: http: 192.0.2.1:8080: bind: "),
                             HasSubstr("error: listen: resp: "), HasSubstr("WEIR_HAS_NO_SUCH"),
                             HasSubstr("2 errors")));
}

TEST_F(ServeCheck, OnlyWarnsOfAnAddressThatIsTaken) {
  // By the service that is to be started anew, most likely.
  const auto taken = ListeningSocket::Open(*Endpoint::Parse("127.0.0.1:0"));
  const auto path = folder_ / "resp.sock";
  const auto taken_path = ListeningSocket::Open(*Endpoint::Parse("unix:" + path.string()));
  const RanCheck ran = Check("listen: { http: '" + taken->endpoint().ToString() +
                             "', resp: 'unix:" + path.string() + "' }\n");
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("warning: listen: http: "), HasSubstr("listen: resp: "),
                             HasSubstr("would start, 1 rule, 2 warnings")));
  EXPECT_TRUE(std::filesystem::exists(path)) << "it is the other's";
}

TEST_F(ServeCheck, LeavesNoSocketBehind) {
  const auto path = folder_ / "resp.sock";
  EXPECT_EQ(Check("listen: { resp: 'unix:" + path.string() + "' }\n").code, kExitOk);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServeCheck, TellsOfSecretsThatAreNotThere) {
  const RanCheck ran =
      Check(std::string("store: 'redis://:env:WEIR_HAS_NO_SUCH@127.0.0.1:1'\n") + kFree);
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.out, HasSubstr("error: store: "));
}

TEST_F(ServeCheck, WarnsOfAStoreThatIsNotReady) {
  const RanCheck ran = Check(std::string("store: redis://127.0.0.1:1\n") + kFree);
  EXPECT_EQ(ran.code, kExitOk) << "the service starts without it";
  EXPECT_THAT(ran.out, AllOf(HasSubstr("warning: store: 127.0.0.1:1 was not ready"),
                             HasSubstr("would start, 1 rule, 1 warning")));
}

TEST_F(ServeCheck, IsNoMemberOfTheFleet) {
  const redis::Server server;
  const RanCheck ran =
      Check("store: 'redis://127.0.0.1:" + std::to_string(server.port()) + "'\n" + kFree);
  EXPECT_THAT(ran.out, Not(HasSubstr("not ready")));
  // That would make others' shares smaller.
  EXPECT_THAT(server.Ask({"EXISTS", "weir1:{~fleet}:members"}), HasSubstr(":0"));
}

TEST_F(ServeCheck, LooksAtEachServer) {
  redis::Server server({"--requirepass", "geheim"});
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const RanCheck reached = Check("store: 'redis://:geheim@" + address + "'\n" + kFree);
  EXPECT_EQ(reached.code, kExitOk);
  EXPECT_THAT(reached.out, AllOf(Not(HasSubstr("not ready")), Not(HasSubstr("geheim"))));

  const RanCheck wrong = Check("store: 'redis://:falsch@" + address + "'\n" + kFree);
  EXPECT_THAT(wrong.out, AllOf(HasSubstr(address + " was not ready"), HasSubstr("WRONGPASS"),
                               Not(HasSubstr("falsch"))));

  const RanCheck one_of_two =
      Check("store: ['redis://:geheim@" + address + "', 'redis://127.0.0.1:1']\n" + kFree);
  EXPECT_THAT(one_of_two.out, AllOf(HasSubstr("warning: store: 127.0.0.1:1 was not ready"),
                                    Not(HasSubstr(address + " was not ready"))));
}

TEST_F(ServeCheck, TellsOfTooFewOpenFiles) {
  // For the rest of this process.
  const rlimit few{.rlim_cur = 256, .rlim_max = 256};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const RanCheck ran = Check(kFree);
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_THAT(ran.out, HasSubstr("warning: limits: connections: only 256 files"));
  EXPECT_THAT(Check("limits: { connections: 100 }\n" + std::string(kFree)).out,
              Not(HasSubstr("warning")));
}

}  // namespace
}  // namespace weir
