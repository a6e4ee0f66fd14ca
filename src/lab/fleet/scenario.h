// What a file says about a world: who asks whom, what is in between, and what goes wrong. What it
// leaves open a seed decides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/time.h>

#include "policy/yaml_tree.h"
#include "sim/fault_kind.h"
#include "sim/random.h"

namespace weir::lab {

// A value, or two between which the seed chooses.
template <typename Value>
struct Between {
  Value least{};
  Value most{};

  static Between Only(Value value) { return {value, value}; }
  Value Draw(sim::Random& random) const { return least == most ? least : Pick(random); }

 private:
  Value Pick(sim::Random& random) const {
    if constexpr (std::is_same_v<Value, Duration>) {
      return random.Between(least, most);
    } else if constexpr (std::is_floating_point_v<Value>) {
      constexpr std::int64_t kSteps = 1'000'000;
      return least + (most - least) * static_cast<Value>(random.Between(0, kSteps)) / kSteps;
    } else {
      return static_cast<Value>(random.Between(std::int64_t{least}, std::int64_t{most}));
    }
  }
};

enum class StoreLayout : std::uint8_t { kMemory, kRedis, kShards, kCluster, kSentinel, kAny };

struct StoreSpec {
  StoreLayout layout = StoreLayout::kRedis;
  std::optional<Between<int>> servers{};  // Shards and clusters: 3.
  // How long bytes are under way, each time anew.
  Between<Duration> latency{std::chrono::microseconds(100), std::chrono::microseconds(500)};
  Between<Duration> timeout = Between<Duration>::Only(std::chrono::milliseconds(50));
  Between<int> connections = Between<int>::Only(1);
  Between<int> max_in_flight = Between<int>::Only(1024);
  Duration clock_offset{0};  // The servers' calendars are wrong by up to this.
};

struct NodesSpec {
  Between<int> count = Between<int>::Only(3);
  std::optional<int> fleet_size{};  // As many as there are; 0: counted by heartbeats.
  Duration clock_offset{0};         // Each calendar is wrong by up to this,
  int clock_drift_ppm = 0;          // and each clock runs wrongly by up to so many millionths.
};

enum class Arrivals : std::uint8_t { kSteady, kPoisson, kBursts };

// Several who behave alike.
struct ClientSpec {
  std::string name = "clients";
  Between<int> count = Between<int>::Only(1);
  Between<double> rate = Between<double>::Only(1);  // Requests a second, of each.
  Arrivals arrivals = Arrivals::kPoisson;
  Between<int> burst = Between<int>::Only(10);  // kBursts: so many at once.
  // What their requests say: {n} stands for the number of the client. Those that say nothing get an
  // address and a user of their own.
  std::map<std::string, std::string> attributes{};
  std::vector<std::pair<std::string, std::string>> headers{};
  Between<std::int64_t> cost = Between<std::int64_t>::Only(1);
  bool is_sticky = false;  // Each asks one node only.
  Between<Duration> from = Between<Duration>::Only(Duration(0));
  std::optional<Between<Duration>> until{};
  // How long a place under a concurrency limit is held; none: until its lease ends.
  std::optional<Between<Duration>> hold{};
};

enum class NodeFault : std::uint8_t { kPause, kRestart, kClockBack, kClockAhead, kReload };

struct FaultSpec {
  // So many, drawn from all that can happen to the store and the nodes. Then nothing else is said.
  std::optional<Between<int>> random{};

  std::string what{};
  std::optional<sim::FaultKind> server_fault{};  // One of
  std::optional<NodeFault> node_fault{};         // the two.
  Between<Duration> at = Between<Duration>::Only(Duration(0));
  Between<Duration> lasts = Between<Duration>::Only(std::chrono::seconds(1));
  bool says_for = false;        // How long was said.
  std::optional<int> server{};  // From 0 on; drawn if not said.
  std::optional<int> node{};    // Likewise; kReload: all of them if not said.
  std::optional<Between<Duration>> by{};
  std::optional<PolicySpec> policy{};  // kReload.
  YamlPlace place{};
};

// What is measured of a run, and what it should be.
enum class Measure : std::uint8_t {
  kRequests,
  kAdmitted,
  kDenied,
  kByStore,
  kByFallback,
  kByOpen,
  kByClosed,
  kDegraded,
  kLatency,
};

struct Expectation {
  Measure measure{};
  std::string text{};  // As it was written: "at most 1%".
  bool is_at_most = false;
  bool is_share = false;  // Of all requests, rather than how many.
  double value = 0;       // A number, a share, or seconds.
};

struct Scenario {
  std::string file{};
  std::string name{};
  std::string description{};
  Between<Duration> duration = Between<Duration>::Only(std::chrono::seconds(10));
  std::optional<PolicySpec> policy{};  // None: drawn, rules and limits.
  StoreSpec store{};
  NodesSpec nodes{};
  std::vector<ClientSpec> clients{};
  std::vector<FaultSpec> faults{};
  std::vector<Expectation> expect{};
};

std::string_view NameOf(StoreLayout layout);
std::string_view NameOf(NodeFault fault);
std::string_view NameOf(Measure measure);

}  // namespace weir::lab
