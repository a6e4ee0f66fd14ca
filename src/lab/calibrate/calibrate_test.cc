#include "lab/calibrate/calibrate.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <weir/engine.h>

#include "lab/calibrate/calibrate_report.h"
#include "lab/calibrate/traffic_under_test.h"

namespace weir::lab {
namespace {

using ::testing::HasSubstr;

Calibration Learn(const LoggedTraffic& traffic, const CalibrationSettings& settings = {},
                  const std::string& key = "ip") {
  const Result<ClientKey> parsed = ClientKey::Parse(key, {});
  const Result<Calibration> learnt =
      Calibrate(*parsed, settings, [&](int) -> Result<std::unique_ptr<LogReader>> {
        return std::make_unique<TrafficReader>(traffic);
      });
  EXPECT_TRUE(learnt) << learnt.error().message;
  return learnt.value_or(Calibration{});
}

struct Enforced {
  std::uint64_t normal = 0;
  std::uint64_t normal_denied = 0;
  std::vector<std::uint64_t> denied{};  // By client.
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The traffic through the policy, with every rule enforced.
Enforced Enforce(const LoggedTraffic& traffic, const std::string& yaml) {
  const PolicyReport report =
      Policy::Parse(Replaced(yaml, "    mode: shadow", "    mode: enforce"));
  Enforced result{.denied = std::vector<std::uint64_t>(traffic.names.size())};
  ManualClock clock(kTrafficBegins);
  auto engine = Engine::Make(report.policy.value(), {.clock = &clock});
  const Now start = clock.Read();
  for (const LoggedArrival& arrival : traffic.arrivals) {
    BatchRequest asked{.request = {.ip = traffic.names[arrival.client], .path = "/"}};
    engine->CheckBatch(
        {&asked, 1}, {.steady = start.steady + (arrival.time - start.wall), .wall = arrival.time});
    const bool denied = !asked.answer.decision.allowed;
    result.denied[arrival.client] += denied ? 1 : 0;
    if (traffic.is_abuser[arrival.client]) continue;
    ++result.normal;
    result.normal_denied += denied ? 1 : 0;
  }
  return result;
}

struct Case {
  const char* name;
  TrafficPlan plan;
  // Of requests of others. Where one client in a thousand sends a good part of all requests, more
  // than a thousandth of them are beyond what the others need.
  double most_denied = 0.001;
  std::size_t most_named_wrongly = 0;
};

double LogNormalPace(TrafficRandom& random) { return 12 * std::exp(0.6 * random.Normal()); }
double ParetoPace(TrafficRandom& random) { return 6 * std::pow(random.Uniform(), -1 / 2.5); }
// A heavier tail, up to what somebody can do at all.
double BoundedParetoPace(TrafficRandom& random) {
  return std::min(150.0, 6 * std::pow(random.Uniform(), -1 / 1.5));
}
double EqualPace(TrafficRandom& /*random*/) { return 24; }
double PhoneOrDeskPace(TrafficRandom& random) {
  return (random.Uniform() < 0.7 ? 5 : 40) * std::exp(0.25 * random.Normal());
}

std::string NameOfCase(const ::testing::TestParamInfo<Case>& tested) {
  return Replaced(Replaced(Replaced(tested.param.name, " ", "_"), "%", "percent"), "-", "_");
}

// More of them on demand, to measure.
std::uint64_t Seeds() {
  const char* const wanted = std::getenv("WEIR_CALIBRATE_SEEDS");
  return wanted == nullptr ? 2 : std::strtoull(wanted, nullptr, 10);
}

class OnKnownTraffic : public ::testing::TestWithParam<Case> {};

TEST_P(OnKnownTraffic, TheLimitIsRightAbusersAreNamedAndOthersAreLeftAlone) {
  for (std::uint64_t seed = 1; seed <= Seeds(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const LoggedTraffic traffic = MakeTraffic(GetParam().plan, seed);
    const Calibration learnt = Learn(traffic);
    ASSERT_FALSE(learnt.rules.empty());

    const double truth = 1.5 * traffic.ExactQuantile(std::chrono::minutes(1), 0.999);
    const auto limit = static_cast<double>(learnt.rules.front().count);
    EXPECT_EQ(learnt.rules.front().period, kMinute);
    EXPECT_GE(limit, 0.95 * truth);
    EXPECT_LE(limit, std::max(1.05 * truth, truth + 1));

    std::set<std::string> planted;
    for (std::size_t i = 0; i < traffic.names.size(); ++i) {
      if (traffic.is_abuser[i]) planted.insert(traffic.names[i]);
    }
    std::set<std::string> named;
    for (const Abuser& abuser : learnt.abusers) named.insert(abuser.name);
    EXPECT_TRUE(std::ranges::includes(named, planted));
    EXPECT_LE(named.size(), planted.size() + GetParam().most_named_wrongly);

    const Enforced enforced = Enforce(traffic, learnt.policy);
    for (std::size_t i = 0; i < traffic.names.size(); ++i) {
      if (traffic.is_abuser[i]) {
        EXPECT_GT(enforced.denied[i], 0U) << traffic.names[i];
      }
    }
    const double share =
        static_cast<double>(enforced.normal_denied) / static_cast<double>(enforced.normal);
    EXPECT_LT(share, GetParam().most_denied);
    std::cout << GetParam().name << ", seed " << seed << ": " << learnt.rules.front().limit()
              << ", truth " << truth << ", error " << 100 * (limit / truth - 1) << " %, "
              << named.size() << " of " << planted.size() << " abusers, others denied "
              << 100 * share << " % of " << enforced.normal << '\n';
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calibrate, OnKnownTraffic,
    ::testing::Values(
        Case{"log-normal", {.pace = LogNormalPace}},
        // Without an upper end, one honest client is now and then so far above all others (in 2 of
        // 25 logs) that by its counts it is an abuser, and the largest of all loses requests. Both
        // are what docs/calibrating.md promises for such traffic, which is less than for any other.
        Case{"Pareto", {.clients = 2'000, .pace = ParetoPace}, 0.01, 1},
        Case{"bounded Pareto", {.pace = BoundedParetoPace}},
        Case{"all equal", {.pace = EqualPace, .evenly = true}},
        Case{"phones and desks", {.pace = PhoneOrDeskPace}},
        Case{"50 clients",
             {.clients = 50, .pace = LogNormalPace, .flood_from = 12, .flood_to = 20}},
        Case{"one client", {.clients = 1, .pace = LogNormalPace, .floods = 0, .scrapers = 0}},
        Case{"no abusers", {.pace = LogNormalPace, .floods = 0, .scrapers = 0}},
        Case{"5 % abusers", {.pace = LogNormalPace, .floods = 60, .scrapers = 0}}),
    NameOfCase);

// --- What else it must say ---

LoggedTraffic Steady(int clients, Duration span, Duration step) {
  LoggedTraffic traffic;
  for (int i = 0; i < clients; ++i) traffic.Add(false);
  for (Duration at{0}; at <= span; at += step) {
    for (int i = 0; i < clients; ++i) {
      traffic.arrivals.push_back({kTrafficBegins + at, static_cast<std::uint32_t>(i)});
    }
  }
  return traffic;
}

TEST(Calibrate, SaysNothingOfTimesLongerThanTheLog) {
  const Calibration learnt = Learn(Steady(10, std::chrono::minutes(90), std::chrono::seconds(30)));
  ASSERT_EQ(learnt.behaviour.size(), 3U);
  EXPECT_TRUE(learnt.behaviour[kMinute].twice);
  EXPECT_FALSE(learnt.behaviour[kHour].twice);
  EXPECT_THAT(learnt.behaviour[kHour].why_not, HasSubstr("less than two"));
  EXPECT_EQ(learnt.periods_not_seen, std::vector<std::size_t>{kDay});
  ASSERT_EQ(learnt.rules.size(), 1U);
  EXPECT_EQ(learnt.rules.front().limit(), "3/min burst 2");
}

TEST(Calibrate, KnowsOnlySecondsFromALogOfHalfAMinute) {
  const Calibration learnt =
      Learn(Steady(10, std::chrono::seconds(30), std::chrono::milliseconds(100)));
  ASSERT_EQ(learnt.rules.size(), 1U);
  EXPECT_EQ(learnt.rules.front().limit(), "15/s burst 2");
}

TEST(Calibrate, NeverDeniesAnybodyWhoKeptToItEvenWithoutAMargin) {
  const LoggedTraffic traffic = MakeTraffic({.clients = 200, .pace = LogNormalPace}, 5);
  const Calibration learnt = Learn(traffic, {.quantile = 1, .margin = 1});
  EXPECT_EQ(learnt.denials.normal_requests, 0U);
  EXPECT_EQ(learnt.denials.normal_clients, 0U);
  const Enforced enforced = Enforce(traffic, learnt.policy);
  EXPECT_EQ(enforced.normal_denied, 0U);
}

TEST(Calibrate, CountsWhatTheRulesWouldHaveDeniedAsTheEngineDoes) {
  const LoggedTraffic traffic =
      MakeTraffic({.clients = 200, .pace = LogNormalPace, .scrapers = 0}, 6);
  const Calibration learnt = Learn(traffic, {.quantile = 0.9, .margin = 1});
  // One rule is enforced as it is tried out; of two, what one denies is not charged to the other.
  for (const ProposedRule& rule : learnt.rules) {
    const std::size_t begin = learnt.policy.find("  - name: " + rule.name + "\n");
    const std::string alone =
        "rules:\n" +
        learnt.policy.substr(begin, learnt.policy.find("    mode: shadow", begin) +
                                        std::string("    mode: shadow\n").size() - begin);
    const Enforced enforced = Enforce(traffic, alone);
    std::uint64_t abusers = 0;
    std::uint64_t clients = 0;
    for (std::size_t i = 0; i < traffic.names.size(); ++i) {
      if (traffic.is_abuser[i]) abusers += enforced.denied[i];
      if (!traffic.is_abuser[i] && enforced.denied[i] > 0) ++clients;
    }
    EXPECT_GT(rule.denials.normal_requests, 0U) << rule.name;
    EXPECT_EQ(rule.denials.normal_requests, enforced.normal_denied) << rule.name;
    EXPECT_EQ(rule.denials.normal_clients, clients) << rule.name;
    EXPECT_EQ(rule.denials.abuser_requests, abusers) << rule.name;
  }
}

TEST(Calibrate, HasARuleMoreForThoseWhomTheOthersLetThrough) {
  // A burst every six hours: nothing by the day, little by the minute, much by the hour.
  LoggedTraffic traffic = Steady(50, std::chrono::hours(50), std::chrono::minutes(10));
  const std::uint32_t client = traffic.Add(true);
  for (int i = 0; i < 140; ++i) {
    traffic.arrivals.push_back({kTrafficBegins + std::chrono::seconds(20 * i), client});
  }
  traffic.Sort();
  const Calibration learnt = Learn(traffic);
  ASSERT_EQ(learnt.abusers.size(), 1U);
  EXPECT_GT(learnt.abusers.front().denied, 0U);
  EXPECT_THAT(learnt.policy, HasSubstr("name: per-ip-hour"));
}

TEST(Calibrate, ShowsAllOfItToPeopleAndPrograms) {
  const LoggedTraffic traffic = MakeTraffic({.clients = 100, .pace = LogNormalPace}, 7);
  const Calibration learnt = Learn(traffic);
  const Report report = ReportOf(learnt);
  for (const Section& section : report.sections) {
    const Table* const table = std::get_if<Table>(&section);
    if (table == nullptr) continue;
    for (const auto& row : table->rows)
      EXPECT_EQ(row.size(), table->columns.size()) << table->title;
  }
  const std::string text = ReportText(report);
  for (const Abuser& abuser : learnt.abusers) EXPECT_THAT(text, HasSubstr(abuser.name));
  EXPECT_THAT(text, HasSubstr("too few to tell"));
  EXPECT_THAT(text, HasSubstr(learnt.rules.front().limit()));

  const auto json = nlohmann::ordered_json::parse(JsonOf(learnt));
  EXPECT_EQ(json["clients"], learnt.clients);
  EXPECT_EQ(json["set_apart"]["named"].size(), 6U);
  EXPECT_EQ(json["rules"][0]["limit"], learnt.rules.front().limit());
  EXPECT_EQ(json["policy"], learnt.policy);
  EXPECT_EQ(json["partial"], false);
}

TEST(Calibrate, SaysWhatItCannotLearnFrom) {
  const auto learn = [](const LoggedTraffic& traffic, const std::string& key) {
    const ClientKey parsed = *ClientKey::Parse(key, {});
    return Calibrate(parsed, {}, [&](int) -> Result<std::unique_ptr<LogReader>> {
      return std::make_unique<TrafficReader>(traffic);
    });
  };
  EXPECT_THAT(learn({}, "ip").error().message, HasSubstr("no line of the log could be used"));
  EXPECT_THAT(
      learn(Steady(2, std::chrono::minutes(1), std::chrono::seconds(1)), "user").error().message,
      HasSubstr("none of the 122 requests in the log has what --key user asks for"));
  EXPECT_THAT(learn(Steady(2, std::chrono::milliseconds(500), std::chrono::milliseconds(100)), "ip")
                  .error()
                  .message,
              HasSubstr("less than a second"));
}

TEST(Calibrate, NoticesALogThatIsAnotherWhenItIsReadAgain) {
  const LoggedTraffic before = Steady(20, std::chrono::minutes(10), std::chrono::seconds(10));
  const LoggedTraffic after = Steady(20, std::chrono::minutes(9), std::chrono::seconds(10));
  const ClientKey key = *ClientKey::Parse("ip", {});
  const Result<Calibration> learnt =
      Calibrate(key, {}, [&](int time) -> Result<std::unique_ptr<LogReader>> {
        return std::make_unique<TrafficReader>(time < 3 ? before : after);
      });
  ASSERT_TRUE(learnt);
  EXPECT_TRUE(learnt->is_partial());
  // One that has grown is the same as far as it was read.
  const Result<Calibration> grown =
      Calibrate(key, {}, [&](int time) -> Result<std::unique_ptr<LogReader>> {
        return std::make_unique<TrafficReader>(time < 3 ? after : before);
      });
  ASSERT_TRUE(grown);
  EXPECT_FALSE(grown->is_partial());
}

TEST(Calibrate, KeepsItsRulesFromThoseItDidNotLearnFrom) {
  LoggedTraffic traffic = Steady(20, std::chrono::minutes(10), std::chrono::seconds(30));
  EXPECT_THAT(Learn(traffic).policy, ::testing::Not(HasSubstr("present")));
  // A log with names where addresses should be.
  const std::uint32_t somebody = traffic.Add(false);
  traffic.names[somebody] = "host.example";
  for (int i = 0; i < 500; ++i) {
    traffic.arrivals.push_back({kTrafficBegins + std::chrono::seconds(i), somebody});
  }
  traffic.Sort();
  const Calibration learnt = Learn(traffic);
  EXPECT_EQ(learnt.without_key, 500U);
  EXPECT_EQ(learnt.denials.normal_requests, 0U);
  EXPECT_EQ(Enforce(traffic, learnt.policy).normal_denied, 0U);
}

TEST(Calibrate, ByPathNamesThePathsThatItsRulesAreFor) {
  const LoggedTraffic traffic = Steady(20, std::chrono::minutes(10), std::chrono::seconds(10));
  const Calibration learnt = Learn(traffic, {}, "ip+path");
  EXPECT_EQ(learnt.chosen_values, std::vector<std::string>{"/"});
  EXPECT_EQ(learnt.chosen_requests, learnt.requests);
  EXPECT_TRUE(Policy::Parse(learnt.policy).problems.empty());
}

}  // namespace
}  // namespace weir::lab
