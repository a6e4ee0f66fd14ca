// threads: gate.cc
#include "frontend/gate.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Gate, RefusesConnectionsBeyondWhatThereMayBeInAll) {
  Gate gate({.connections = 2, .per_address = 10});
  EXPECT_FALSE(gate.Enter("192.0.2.1"));
  EXPECT_FALSE(gate.Enter(""));
  EXPECT_EQ(gate.Enter("192.0.2.2"), Refusal::kConnections);
  gate.Leave("");
  EXPECT_FALSE(gate.Enter("192.0.2.2"));
}

TEST(Gate, RefusesConnectionsBeyondWhatOneAddressMayHave) {
  Gate gate({.connections = 10, .per_address = 2});
  EXPECT_FALSE(gate.Enter("192.0.2.1"));
  EXPECT_FALSE(gate.Enter("192.0.2.1"));
  EXPECT_EQ(gate.Enter("192.0.2.1"), Refusal::kPerAddress);
  EXPECT_FALSE(gate.Enter("192.0.2.2"));
  EXPECT_EQ(gate.connections(), 3U);
  gate.Leave("192.0.2.1");
  EXPECT_FALSE(gate.Enter("192.0.2.1"));
}

TEST(Gate, TakesAllAddressesOfAnIpv6NetworkForOne) {
  Gate gate({.connections = 10, .per_address = 2});
  EXPECT_FALSE(gate.Enter("2001:db8::1"));
  EXPECT_FALSE(gate.Enter("2001:db8::ffff:2"));
  EXPECT_EQ(gate.Enter("2001:db8::3"), Refusal::kPerAddress);
  EXPECT_FALSE(gate.Enter("2001:db8:0:1::1"));
  gate.Leave("2001:db8::1");
  EXPECT_FALSE(gate.Enter("2001:db8::3"));
}

TEST(Gate, DoesNotCountAddressesOnUnixSockets) {
  Gate gate({.connections = 10, .per_address = 1});
  EXPECT_FALSE(gate.Enter(""));
  EXPECT_FALSE(gate.Enter(""));
}

TEST(Gate, TakesOtherBoundsForThoseWhoComeLater) {
  Gate gate({.connections = 1, .per_address = 1});
  EXPECT_FALSE(gate.Enter("a"));
  gate.SetLimits({.connections = 2, .per_address = 1});
  EXPECT_EQ(gate.Enter("a"), Refusal::kPerAddress);
  EXPECT_FALSE(gate.Enter("b"));
}

TEST(Gate, CountsRightWhenManyComeAndGoAtOnce) {
  Gate gate({.connections = 50, .per_address = 20});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 2000; ++j) {
        gate.AddBuffered(10);
        if (!gate.Enter("192.0.2.1")) gate.Leave("192.0.2.1");
        gate.AddBuffered(-10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gate.connections(), 0U);
  EXPECT_EQ(gate.buffered(), 0U);
}

}  // namespace
}  // namespace weir
