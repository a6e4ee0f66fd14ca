#include "server/signals.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Signals, AreHeldUntilSomebodyWaitsForThem) {
  const Signals signals;
  kill(getpid(), SIGHUP);
  EXPECT_EQ(signals.Wait(), Signal::kReload);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(signals.Wait(), Signal::kStop);
  kill(getpid(), SIGINT);
  EXPECT_EQ(signals.Wait(), Signal::kStop);
}

TEST(Signals, ThatComeTooLateDoNothing) {
  {
    const Signals signals;
    kill(getpid(), SIGTERM);
    EXPECT_EQ(signals.Wait(), Signal::kStop);
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGHUP);
  }
  SUCCEED();  // Which a process that was ended would not get to.
}

}  // namespace
}  // namespace weir
