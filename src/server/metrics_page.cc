#include "server/metrics_page.h"

#include <algorithm>
#include <utility>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace weir {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

double Number(std::uint64_t value) { return static_cast<double>(value); }

double Seconds(Duration length) { return static_cast<double>(length.count()) / 1e9; }

class Page {
 public:
  void Begin(std::string name, std::string help, MetricType type) {
    families_.push_back(
        {.name = std::move(name), .help = std::move(help), .type = type, .metric = {}});
  }
  void Add(double value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = metric.gauge.value = value;  // Whichever the family is.
    families_.back().metric.push_back(std::move(metric));
  }
  void Add(const std::vector<const ListenerMetrics*>& threads, Labels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    std::uint64_t count = 0;
    for (std::size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
      for (const ListenerMetrics* thread : threads) count += thread->decision_time.count(bucket);
      const bool last = bucket + 1 == Histogram::kBuckets;  // Has no bound: see +Inf.
      if (!last) {
        metric.histogram.bucket.push_back(
            {.cumulative_count = count, .upper_bound = Number(Histogram::Bound(bucket)) / 1e9});
      }
    }
    metric.histogram.sample_count = count;
    for (const ListenerMetrics* thread : threads) {
      metric.histogram.sample_sum += Number(thread->decision_time.sum_nanoseconds()) / 1e9;
    }
    families_.back().metric.push_back(std::move(metric));
  }
  void Add(const StoreHealth::Server& server, Labels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    std::uint64_t count = 0;
    for (const StoreHealth::Times& times : server.times) {
      count += times.count;
      if (times.bound == kNever) continue;  // Has no bound: see +Inf.
      metric.histogram.bucket.push_back(
          {.cumulative_count = count, .upper_bound = Seconds(times.bound)});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = Seconds(server.time_sum);
    families_.back().metric.push_back(std::move(metric));
  }
  void AddOne(std::string name, std::string help, MetricType type, double value,
              Labels labels = {}) {
    Begin(std::move(name), std::move(help), type);
    Add(value, std::move(labels));
  }

  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

void AddDecisions(const MetricsSnapshot& snapshot, Page& page) {
  page.Begin("weir_decisions_total", "What rules decided about requests.", MetricType::Counter);
  for (const RuleCount& rule : snapshot.rules) {
    page.Add(Number(rule.count),
             {{"rule", std::string(rule.rule)}, {"outcome", std::string(rule.outcome)}});
  }
}

template <typename Value>
std::uint64_t Sum(const MetricsSnapshot::Listener& listener, Value value) {
  std::uint64_t sum = 0;
  for (const ListenerMetrics* thread : listener.threads) sum += value(*thread).Value();
  return sum;
}

void AddListeners(const MetricsSnapshot& snapshot, Page& page) {
  page.Begin("weir_decision_seconds", "Time from reading a request to its decision.",
             MetricType::Histogram);
  for (const auto& listener : snapshot.listeners) {
    page.Add(listener.threads, {{"frontend", std::string(listener.protocol)}});
  }
  page.Begin("weir_requests_total", "Requests by how they were answered.", MetricType::Counter);
  for (const auto& listener : snapshot.listeners) {
    for (std::size_t i = 0; i < kReplyCodes.size(); ++i) {
      const std::uint64_t count =
          Sum(listener, [&](const ListenerMetrics& own) -> auto& { return own.requests[i]; });
      if (count == 0) continue;
      page.Add(Number(count), {{"frontend", std::string(listener.protocol)},
                               {"code", std::string(kReplyCodes[i])}});
    }
  }
  page.Begin("weir_connections", "Connections that are open.", MetricType::Gauge);
  for (const auto& listener : snapshot.listeners) {
    const std::uint64_t open =
        Sum(listener, [](const ListenerMetrics& own) -> auto& { return own.connections; });
    page.Add(Number(open), {{"listener", std::string(listener.protocol)}});
  }
  page.Begin("weir_refused_total", "How often a bound on clients took effect.",
             MetricType::Counter);
  for (const auto& listener : snapshot.listeners) {
    for (std::size_t i = 0; i < kRefusalNames.size(); ++i) {
      const std::uint64_t count =
          Sum(listener, [&](const ListenerMetrics& own) -> auto& { return own.refused[i]; });
      page.Add(Number(count), {{"listener", std::string(listener.protocol)},
                               {"why", std::string(kRefusalNames[i])}});
    }
  }
}

// Nothing if no listener speaks it.
void AddTls(const std::vector<MetricsSnapshot::Listener>& listeners, Page& page) {
  if (std::ranges::none_of(listeners,
                           [](const auto& listener) { return listener.tls.has_value(); }))
    return;
  page.Begin("weir_tls_certificate_expiry_seconds",
             "When the certificate of a listener ends, in seconds since 1970.", MetricType::Gauge);
  for (const auto& listener : listeners) {
    if (!listener.tls) continue;
    page.Add(Seconds(listener.tls->expires.time_since_epoch()),
             {{"listener", std::string(listener.protocol)}});
  }
  page.Begin("weir_tls_reloads_total", "Attempts to take up changed certificates.",
             MetricType::Counter);
  for (const auto& listener : listeners) {
    if (!listener.tls) continue;
    const std::string name(listener.protocol);
    page.Add(Number(listener.tls->reloads_applied), {{"listener", name}, {"result", "applied"}});
    page.Add(Number(listener.tls->reloads_refused), {{"listener", name}, {"result", "refused"}});
  }
}

void AddEngine(const MetricsSnapshot& snapshot, Page& page) {
  const LimiterStats& store = snapshot.engine.store;
  page.AddOne("weir_table_bytes", "Memory for the state of keys.", MetricType::Gauge,
              Number(store.bytes));
  page.AddOne("weir_table_entries", "Keys held.", MetricType::Gauge, Number(store.entries));
  page.Begin("weir_evictions_total", "Keys forgotten before their time for want of room.",
             MetricType::Counter);
  page.Add(Number(store.evicted_live), {{"kind", "live"}});
  page.Add(Number(store.evicted_denied), {{"kind", "denied"}});
  page.AddOne("weir_reservations",
              "Reservations and leases held: open, or expired and not cleared yet.",
              MetricType::Gauge, Number(store.reservations));
  page.AddOne("weir_waiters", "Requests that wait for their turn.", MetricType::Gauge,
              Number(store.waiters));
  page.AddOne("weir_buffered_bytes", "Bytes held for all connections.", MetricType::Gauge,
              Number(snapshot.buffered_bytes));
  page.AddOne("weir_policy_version", "Which policy is in force, counted from 1.", MetricType::Gauge,
              Number(snapshot.engine.version));
  page.Begin("weir_policy_reloads_total", "Attempts to take up a changed policy.",
             MetricType::Counter);
  page.Add(Number(snapshot.reloads_applied), {{"result", "applied"}});
  page.Add(Number(snapshot.reloads_refused), {{"result", "refused"}});
  page.AddOne("weir_ready", "1 while the service takes in requests, 0 while it starts or drains.",
              MetricType::Gauge, snapshot.ready ? 1 : 0);
  page.AddOne("weir_start_time_seconds", "When the service started, in seconds since 1970.",
              MetricType::Gauge, Seconds(snapshot.started.time_since_epoch()));
  page.AddOne("weir_info", "What is running.", MetricType::Gauge, 1,
              {{"version", std::string(snapshot.version)}});
}

void AddServers(const std::vector<StoreHealth::Server>& servers, Page& page) {
  const auto labels = [](const StoreHealth::Server& server) -> Labels {
    return {{"endpoint", server.name}};
  };
  page.Begin("weir_store_seconds", "How long servers of the store took to answer.",
             MetricType::Histogram);
  for (const auto& server : servers) page.Add(server, labels(server));
  page.Begin("weir_store_errors_total", "Calls to servers of the store that failed, by why.",
             MetricType::Counter);
  for (const auto& server : servers) {
    for (const StoreHealth::Fault& fault : server.faults) {
      page.Add(Number(fault.count), {{"endpoint", server.name}, {"kind", std::string(fault.kind)}});
    }
  }
  page.Begin("weir_breaker_state",
             "1 while a server of the store is left alone because it failed too often, else 0.",
             MetricType::Gauge);
  for (const auto& server : servers) page.Add(server.breaker_open ? 1 : 0, labels(server));
  page.Begin("weir_store_in_flight", "Calls to a server of the store that are under way.",
             MetricType::Gauge);
  for (const auto& server : servers) page.Add(Number(server.in_flight), labels(server));
  page.Begin("weir_store_connections", "Connections to a server of the store.", MetricType::Gauge);
  for (const auto& server : servers) page.Add(Number(server.connections), labels(server));
}

// Nothing if the store is in this process.
void AddStore(const StoreHealth& store, Page& page) {
  if (!store.shared) return;
  AddServers(store.servers, page);
  page.AddOne("weir_degraded_seconds",
              "How long the store has failed by now, so that rules decide as they say for that; 0 "
              "when it is well.",
              MetricType::Gauge, Seconds(store.degraded_for));
  page.AddOne("weir_degraded_times_total", "How often the store has begun to fail.",
              MetricType::Counter, Number(store.degraded_times));
  page.AddOne("weir_fleet_size", "How many processes share the store, as far as is known.",
              MetricType::Gauge, store.fleet_size);
  page.Begin("weir_fallback_decisions_total",
             "Requests that were decided in the store's place, by how.", MetricType::Counter);
  page.Add(Number(store.decided_open), {{"mode", "open"}});
  page.Add(Number(store.decided_closed), {{"mode", "closed"}});
  page.Add(Number(store.decided_fallback), {{"mode", "static"}});
}

}  // namespace

std::string MetricsPage(const MetricsSnapshot& snapshot) {
  Page page;
  AddDecisions(snapshot, page);
  AddListeners(snapshot, page);
  AddTls(snapshot.listeners, page);
  AddEngine(snapshot, page);
  AddStore(snapshot.store, page);
  return page.Text();
}

}  // namespace weir
