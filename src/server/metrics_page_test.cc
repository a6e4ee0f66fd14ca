#include "server/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(MetricsPage, SaysNothingOfAStoreInThisProcess) {
  const std::string page = MetricsPage({});
  EXPECT_THAT(page, Not(HasSubstr("weir_store_")));
  EXPECT_THAT(page, Not(HasSubstr("weir_degraded")));
}

TEST(MetricsPage, TellsHowASharedStoreFares) {
  MetricsSnapshot snapshot;
  snapshot.store = {.shared = true,
                    .degraded = true,
                    .degraded_for = 2500ms,
                    .degraded_times = 3,
                    .fleet_size = 4,
                    .decided_open = 5,
                    .decided_closed = 6,
                    .decided_fallback = 7};
  snapshot.store.servers.push_back({.name = "127.0.0.1:6379",
                                    .breaker_open = true,
                                    .faults = {{.kind = "timeout", .count = 8}},
                                    .times = {{.bound = 1ms, .count = 10},
                                              {.bound = 2ms, .count = 5},
                                              {.bound = kNever, .count = 1}},
                                    .time_sum = 30ms,
                                    .connections = 2,
                                    .in_flight = 9});
  const std::string page = MetricsPage(snapshot);
  for (const std::string_view line :
       {"weir_store_seconds_bucket{endpoint=\"127.0.0.1:6379\",le=\"0.001\"} 10\n",
        "weir_store_seconds_bucket{endpoint=\"127.0.0.1:6379\",le=\"0.002\"} 15\n",
        "weir_store_seconds_bucket{endpoint=\"127.0.0.1:6379\",le=\"+Inf\"} 16\n",
        "weir_store_seconds_count{endpoint=\"127.0.0.1:6379\"} 16\n",
        "weir_store_seconds_sum{endpoint=\"127.0.0.1:6379\"} 0.03\n",
        "weir_store_errors_total{endpoint=\"127.0.0.1:6379\",kind=\"timeout\"} 8\n",
        "weir_breaker_state{endpoint=\"127.0.0.1:6379\"} 1\n",
        "weir_store_in_flight{endpoint=\"127.0.0.1:6379\"} 9\n",
        "weir_store_connections{endpoint=\"127.0.0.1:6379\"} 2\n", "weir_degraded_seconds 2.5\n",
        "weir_degraded_times_total 3\n", "weir_fleet_size 4\n",
        "weir_fallback_decisions_total{mode=\"open\"} 5\n",
        "weir_fallback_decisions_total{mode=\"closed\"} 6\n",
        "weir_fallback_decisions_total{mode=\"static\"} 7\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(MetricsPage, TellsWhenTheServiceStarted) {
  MetricsSnapshot snapshot;
  snapshot.started = WallTime(1'700'000'000'250ms);
  EXPECT_THAT(MetricsPage(snapshot), HasSubstr("\nweir_start_time_seconds 1700000000.25\n"));
}

TEST(MetricsPage, TellsOfTheCertificatesOfThoseWhoSpeakTls) {
  MetricsSnapshot snapshot;
  snapshot.listeners.push_back({.protocol = "http"});
  EXPECT_THAT(MetricsPage(snapshot), Not(HasSubstr("weir_tls_")));
  snapshot.listeners.push_back(
      {.protocol = "resp",
       .tls = {{.expires = WallTime(1'800'000'000s), .reloads_applied = 3, .reloads_refused = 2}}});
  const std::string page = MetricsPage(snapshot);
  for (const std::string_view line :
       {"weir_tls_certificate_expiry_seconds{listener=\"resp\"} 1800000000\n",
        "weir_tls_reloads_total{listener=\"resp\",result=\"applied\"} 3\n",
        "weir_tls_reloads_total{listener=\"resp\",result=\"refused\"} 2\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  EXPECT_THAT(page, Not(HasSubstr("expiry_seconds{listener=\"http\"}")));
}

TEST(MetricsPage, HasNoBucketTwice) {
  MetricsSnapshot snapshot;
  snapshot.store.shared = true;
  snapshot.store.servers.push_back({.name = "a", .times = {{.bound = kNever, .count = 1}}});
  const std::string page = MetricsPage(snapshot);
  const std::size_t first = page.find("le=\"+Inf\"");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(page.find("le=\"+Inf\"", first + 1), std::string::npos);
}

}  // namespace
}  // namespace weir
