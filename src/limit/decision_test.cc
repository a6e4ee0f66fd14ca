#include <weir/decision.h>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Decision, IsARefusalUntilSomebodyDecides) {
  const Decision decision;
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kNoRule);
  EXPECT_EQ(decision.reservation, ReservationId::kNone);
}

TEST(Reason, HasTheNamesUsedOnTheWire) {
  EXPECT_EQ(NameOf(Reason::kOk), "ok");
  EXPECT_EQ(NameOf(Reason::kLimited), "limited");
  EXPECT_EQ(NameOf(Reason::kNeverFits), "never_fits");
  EXPECT_EQ(NameOf(Reason::kBanned), "banned");
  EXPECT_EQ(NameOf(Reason::kAllowList), "allow_list");
  EXPECT_EQ(NameOf(Reason::kDenyList), "deny_list");
  EXPECT_EQ(NameOf(Reason::kNoRule), "no_rule");
  EXPECT_EQ(NameOf(Reason::kStoreFailure), "store_failure");
  EXPECT_EQ(NameOf(Reason::kOverload), "overload");
}

TEST(Source, HasTheNamesUsedOnTheWire) {
  EXPECT_EQ(NameOf(Source::kMemory), "memory");
  EXPECT_EQ(NameOf(Source::kStore), "store");
  EXPECT_EQ(NameOf(Source::kLease), "lease");
  EXPECT_EQ(NameOf(Source::kFallback), "fallback");
  EXPECT_EQ(NameOf(Source::kOpen), "open");
  EXPECT_EQ(NameOf(Source::kClosed), "closed");
}

TEST(NameOf, CallsAValueThatDoesNotExistUnknown) {
  EXPECT_EQ(NameOf(static_cast<Reason>(200)), "unknown");
  EXPECT_EQ(NameOf(static_cast<Source>(200)), "unknown");
}

}  // namespace
}  // namespace weir
