// Every recipe does what its comment says.
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const std::filesystem::path& Folder() {
  static const std::filesystem::path folder = WEIR_SOURCE_DIR "/examples/policies";
  return folder;
}

Policy Recipe(const std::string& name) {
  PolicyReport report = Policy::Load((Folder() / (name + ".yaml")).string());
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  return report.policy.value();
}

TEST(Recipes, LoadWithoutAWordOfAdvice) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() != ".yaml") continue;
    ++recipes;
    const PolicyReport report = Policy::Load(entry.path().string());
    ASSERT_TRUE(report.policy) << entry.path();
    for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
    EXPECT_EQ(Policy::Parse(ToYaml(report.policy->spec())).policy->spec(), report.policy->spec());
  }
  EXPECT_GE(recipes, 9);
}

TEST(LayeredApi, LimitsAddressesUsersAndLoginsAndChargesAllOrNone) {
  EngineUnderTest under_test(Recipe("layered-api"));
  const Request user{.ip = "192.0.2.1", .user = "ann", .path = "/"};
  EXPECT_EQ(under_test.Exhaust(user), 100);
  EXPECT_EQ(under_test.Check(user).rule, "per-user");
  const Request stranger{.ip = "192.0.2.1", .path = "/"};
  EXPECT_EQ(under_test.Exhaust(stranger), 100);  // What is left of the address.
  EXPECT_EQ(under_test.Check(stranger).rule, "per-ip");
}

TEST(LayeredApi, ShutsOutThoseWhoGuessPasswords) {
  EngineUnderTest under_test(Recipe("layered-api"));
  const Request login{.ip = "192.0.2.1", .method = "POST", .path = "/auth/login"};
  EXPECT_EQ(under_test.Exhaust(login), 5);  // Ends with the first denial.
  for (int i = 2; i < 10; ++i) EXPECT_EQ(under_test.Check(login).reason, Reason::kLimited);
  EXPECT_EQ(under_test.Check(login).reason, Reason::kBanned);
  under_test.clock.Advance(minutes(9));
  const Answer banned = under_test.engine.Check(login);
  EXPECT_EQ(banned.decision.reason, Reason::kBanned);
  EXPECT_EQ(banned.decision.retry_after, minutes(1));
  EXPECT_EQ(banned.message, "Too many authentication attempts");
  EXPECT_TRUE(under_test.Allows({.ip = "192.0.2.1", .method = "GET", .path = "/"}));
  under_test.clock.Advance(minutes(1));
  EXPECT_TRUE(under_test.Allows(login));
}

TEST(Visitors, AreCountedByFingerprintAndEndpointWithALimitByAddressAbove) {
  EngineUnderTest under_test(Recipe("visitors"));
  const std::array<NamedValue, 1> firefox = {{{"User-Agent", "Firefox"}}};
  const Request visitor{.ip = "192.0.2.1", .path = "/a", .headers = firefox};
  EXPECT_EQ(under_test.Exhaust(visitor), 30);
  EXPECT_EQ(under_test.Check(visitor).rule, "visitor");
  Request elsewhere = visitor;
  elsewhere.path = "/b";
  EXPECT_EQ(under_test.Exhaust(elsewhere), 30);
  Request logged_in = visitor;
  logged_in.user = "ann";
  EXPECT_TRUE(under_test.Allows(logged_in));
  // Making up user agents helps up to the limit of the address.
  int admitted = 61;
  for (int i = 0; i < 1'000; ++i) {
    const std::string agent = "agent " + std::to_string(i);
    const std::array<NamedValue, 1> made_up = {{{"User-Agent", agent}}};
    if (under_test.Allows({.ip = "192.0.2.1", .path = "/a", .headers = made_up})) ++admitted;
  }
  EXPECT_EQ(admitted, 600);
}

TEST(SearchAndWrites, BelievesOnlyTheGatewayAndLimitsWrites) {
  EngineUnderTest under_test(Recipe("search-and-writes"));
  const std::array<NamedValue, 1> costly = {{{"x-query-cost", "50"}}};
  Request search{.ip = "192.0.2.1", .api_key = "k", .path = "/search/x", .headers = costly};
  EXPECT_EQ(under_test.Exhaust(search), 2);
  search.trusted = false;
  EXPECT_FALSE(under_test.Allows(search));
  search.api_key = "other";
  EXPECT_EQ(under_test.Exhaust(search), 100);
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1", .method = "DELETE", .path = "/x"}), 10);
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1", .user = "ann", .method = "PUT", .path = "/x"}),
            10);
  EXPECT_EQ(under_test.Check({.ip = "192.0.2.1", .method = "GET", .path = "/x"}).rule, "per-ip");
}

TEST(Tiers, GiveWhatACustomerPaysFor) {
  EngineUnderTest under_test(Recipe("tiers"));
  EXPECT_EQ(under_test.Exhaust({.user = "ann"}), 50);
  EXPECT_EQ(under_test.Exhaust({.user = "bob", .tier = "pro"}), 200);
  EXPECT_EQ(under_test.Exhaust({.user = "cyd", .tier = "internal"}, 5'000), 5'000);
  EXPECT_EQ(under_test.Remaining("daily-quota", {.user = "ann"}), 950);
}

TEST(FirstBurst, GivesFiftyAtOnceThenTenAMinuteAndAThousandADay) {
  EngineUnderTest under_test(Recipe("first-burst"));
  const Request somebody{.user = "new"};
  EXPECT_EQ(under_test.Exhaust(somebody), 50);
  int today = 50;
  for (int minute = 1; minute <= 95; ++minute) {
    under_test.clock.Advance(minutes(1));
    EXPECT_EQ(under_test.Exhaust(somebody), 10) << minute;
    today += 10;
  }
  EXPECT_EQ(today, 1'000);
  under_test.clock.Advance(hours(1));
  const Decision denied = under_test.Check(somebody);
  EXPECT_EQ(denied.rule, "daily");
  under_test.clock.Advance(denied.retry_after);
  EXPECT_EQ(under_test.Exhaust(somebody), 50);
}

TEST(Webhooks, GoToEachReceiverEvenlyAndAHundredMayWait) {
  EngineUnderTest under_test(Recipe("webhooks"));
  for (const char* host : {"a.example", "b.example"}) {
    for (int i = 0; i <= 100; ++i) {
      const Decision decision = under_test.Check({.host = host});
      ASSERT_TRUE(decision.allowed) << i;
      EXPECT_EQ(decision.delay, i * milliseconds(200));
    }
    EXPECT_EQ(under_test.Check({.host = host}).rule, "per-receiver");
  }
}

TEST(GraphQl, TellsAQueryThatItWillNeverFit) {
  EngineUnderTest under_test(Recipe("graphql"));
  const auto query = [&](std::string_view cost) {
    const std::array<NamedValue, 1> headers = {{{"X-GraphQL-Cost", cost}}};
    return under_test.Check({.ip = "192.0.2.1",
                             .api_key = "k",
                             .method = "POST",
                             .path = "/graphql",
                             .headers = headers});
  };
  EXPECT_EQ(query("1001").reason, Reason::kNeverFits);
  EXPECT_EQ(query("1001").rule, "query-cost");
  EXPECT_EQ(query("1001").retry_after, kNever);
  EXPECT_TRUE(query("900").allowed);
  EXPECT_TRUE(query("no number").allowed);  // Costs 10.
  EXPECT_EQ(query("91").reason, Reason::kLimited);
  EXPECT_TRUE(query("90").allowed);
}

TEST(LlmTokens, AreReservedByEstimateAndSettledByWhatTheAnswerTook) {
  EngineUnderTest under_test(Recipe("llm-tokens"));
  const Request completion{.org = "acme", .path = "/v1/completions"};
  const Decision taken = under_test.engine.Reserve(completion, {.cost = 5'000}).decision;
  ASSERT_TRUE(taken.allowed);
  EXPECT_EQ(under_test.Remaining("tokens", completion), 95'000);
  ASSERT_TRUE(under_test.engine.Commit(taken.reservation, 2'000));
  EXPECT_EQ(under_test.Remaining("tokens", completion), 98'000);
  EXPECT_EQ(under_test.Remaining("requests", completion), 59);
  EXPECT_EQ(under_test.Remaining("at-once", completion), 20);

  const Decision modest = under_test.engine.Reserve(completion, {.cost = 1}).decision;
  ASSERT_TRUE(under_test.engine.Commit(modest.reservation, 110'000));  // Into debt.
  EXPECT_FALSE(under_test.engine.Reserve(completion, {.cost = 1}).decision.allowed);
  under_test.clock.Advance(seconds(10));
  EXPECT_TRUE(under_test.engine.Reserve(completion, {.cost = 1}).decision.allowed);
}

TEST(LlmTokens, AreProducedForTwentyAtOnce) {
  EngineUnderTest under_test(Recipe("llm-tokens"));
  const Request completion{.org = "acme", .path = "/v1/completions"};
  std::vector<ReservationId> open;
  for (int i = 0; i < 20; ++i) {
    const Decision taken = under_test.engine.Reserve(completion, {.cost = 100}).decision;
    ASSERT_TRUE(taken.allowed);
    open.push_back(taken.reservation);
  }
  EXPECT_EQ(under_test.engine.Reserve(completion, {.cost = 100}).decision.rule, "at-once");
  EXPECT_EQ(under_test.Remaining("tokens", completion), 98'000);
  ASSERT_TRUE(under_test.engine.Commit(open.front(), 100));
  EXPECT_TRUE(under_test.engine.Reserve(completion, {.cost = 100}).decision.allowed);
}

}  // namespace
}  // namespace weir
