#include "net/h2/frame_watch.h"

#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr SteadyTime kStart{std::chrono::hours(1)};

std::string Frame(unsigned type, unsigned flags, std::size_t size) {
  std::string frame = {static_cast<char>(size >> 16),
                       static_cast<char>(size >> 8),
                       static_cast<char>(size),
                       static_cast<char>(type),
                       static_cast<char>(flags),
                       0,
                       0,
                       0,
                       1};
  return frame + std::string(size, 'x');
}

class Watched {
 public:
  Watched() { watch_.See("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", kStart); }

  // How many such frames it takes until they are too many.
  int CountUntil(H2Abuse expected, const std::string& frame, int most = 100'000) {
    for (int i = 1; i <= most; ++i) {
      if (const auto abuse = watch_.See(frame, now)) {
        EXPECT_EQ(*abuse, expected);
        return i;
      }
    }
    return most + 1;
  }
  H2FrameWatch& watch() { return watch_; }

  SteadyTime now = kStart;

 private:
  H2FrameWatch watch_{{}, kStart};
};

TEST(H2FrameWatch, CutsOffWhoSendsTooManyOfOneKind) {
  const struct {
    H2Abuse abuse;
    unsigned type;
    std::size_t size;
    int most;
  } kinds[] = {{H2Abuse::kSmallData, 0, 0, 2'000}, {H2Abuse::kPriorities, 2, 5, 500},
               {H2Abuse::kResets, 3, 4, 1'000},    {H2Abuse::kSettings, 4, 0, 100},
               {H2Abuse::kPings, 6, 8, 200},       {H2Abuse::kWindows, 8, 4, 2'000},
               {H2Abuse::kOthers, 77, 3, 100}};
  for (const auto& kind : kinds) {
    Watched watched;
    EXPECT_EQ(watched.CountUntil(kind.abuse, Frame(kind.type, 0, kind.size)), kind.most + 1)
        << kind.type;
  }
}

TEST(H2FrameWatch, GivesTimeBack) {
  Watched watched;
  const std::string ping = Frame(6, 0, 8);
  for (int i = 0; i < 200; ++i) ASSERT_FALSE(watched.watch().See(ping, watched.now));
  watched.now += std::chrono::seconds(2);
  EXPECT_EQ(watched.CountUntil(H2Abuse::kPings, ping), 21) << "ten a second";
}

TEST(H2FrameWatch, NeverGivesMoreBackThanThereWas) {
  Watched watched;
  const std::string ping = Frame(6, 0, 8);
  watched.now += std::chrono::hours(24 * 365);
  EXPECT_LE(watched.CountUntil(H2Abuse::kPings, ping), 401);
}

TEST(H2FrameWatch, LetsThemGoOnWhoAskForSomething) {
  Watched watched;
  const std::string ping = Frame(6, 0, 8);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(watched.watch().See(ping, watched.now)) << i;
    watched.watch().CreditRequest();
  }
}

TEST(H2FrameWatch, DoesNotCountDataThatBringsSomething) {
  Watched watched;
  EXPECT_EQ(watched.CountUntil(H2Abuse::kSmallData, Frame(0, 0, 1'000), 5'000), 5'001);
  EXPECT_EQ(watched.CountUntil(H2Abuse::kSmallData, Frame(0, 1, 0), 5'000), 2'001)
      << "that it ends a stream, perhaps one that is over, brings nothing";
}

TEST(H2FrameWatch, CutsOffBlocksWithoutEnd) {
  Watched watched;
  ASSERT_FALSE(watched.watch().See(Frame(1, 0, 10), kStart));
  EXPECT_EQ(watched.CountUntil(H2Abuse::kContinuations, Frame(9, 0, 0)), 9);
  Watched large;
  ASSERT_FALSE(large.watch().See(Frame(1, 0, 10'000), kStart));
  EXPECT_EQ(large.CountUntil(H2Abuse::kContinuations, Frame(9, 0, 6'000)), 2) << "16 KiB in all";
}

TEST(H2FrameWatch, CutsOffHeadersThatLeadToNothing) {
  Watched watched;
  EXPECT_EQ(watched.CountUntil(H2Abuse::kHeaderBytes, Frame(1, 4, 8'192)), 129) << "1 MiB";
  Watched small;
  EXPECT_EQ(small.CountUntil(H2Abuse::kHeaderBytes, Frame(1, 4, 1)), 4'097) << "256 at least";
}

TEST(H2FrameWatch, SeesTheSameHoweverTheBytesAreCut) {
  std::string bytes;
  for (int i = 0; i < 150; ++i) bytes += Frame(4, 0, 6) + Frame(0, 1, 40);
  for (const std::size_t piece : {1U, 2U, 8U, 9U, 10U, 1'000U}) {
    Watched watched;
    std::size_t at = 0;
    bool seen = false;
    for (; at < bytes.size() && !seen; at += piece) {
      seen = watched.watch().See(std::string_view(bytes).substr(at, piece), kStart).has_value();
    }
    EXPECT_TRUE(seen) << piece;
    const std::size_t expected = 100 * (15 + 49) + 9;
    EXPECT_GE(at, expected);
    EXPECT_LT(at, expected + piece + 1);
  }
}

}  // namespace
}  // namespace weir
