#include "lab/fleet/scenario_check.h"

#include <cstdint>
#include <iterator>
#include <set>
#include <string>

#include "lab/fleet/scenario_reader.h"
#include "limit/limit_words.h"

namespace weir::lab {
namespace {

class Check {
 public:
  Check(const Scenario& scenario, ProblemList& problems)
      : scenario_(scenario), problems_(problems) {}

  void All() {
    CheckClients();
    for (const FaultSpec& fault : scenario_.faults) CheckFault(fault);
    CheckOverlaps();
  }

 private:
  void Say(YamlPlace place, std::string message) {
    problems_.AddAt(ProblemCode::kOutOfRange, scenario_.file, place, "", std::move(message));
  }
  Duration Latest() const { return scenario_.duration.least; }

  void CheckClients() {
    constexpr YamlPlace kTop{.line = 1, .column = 1};
    if (scenario_.clients.empty()) {
      return problems_.AddAt(ProblemCode::kMissing, scenario_.file, kTop, "",
                             "nobody asks for anything; write clients:");
    }
    double requests = 0;
    std::int64_t clients = 0;
    std::set<std::string> names;
    const double seconds = std::chrono::duration<double>(scenario_.duration.most).count();
    for (const ClientSpec& client : scenario_.clients) {
      // The first burst comes however low the rate is.
      const double at_start = client.arrivals == Arrivals::kBursts ? client.burst.most : 0;
      requests += (client.rate.most * seconds + at_start) * client.count.most;
      clients += client.count.most;
      if (!names.insert(client.name).second) {
        Say(kTop, "two groups of clients are called " + Quoted(client.name) +
                      "; give each a name of its own");
      }
      if (client.until && client.until->least <= client.from.most) {
        Say(kTop, "clients " + Quoted(client.name) + " stop before they begin");
      }
    }
    if (requests > kMostRequests) {
      Say(kTop, "more than 2M requests in one run; lower rate, count or duration");
    }
    if (clients > kMostClients) Say(kTop, "more than 10000 clients in one run");
  }

  void CheckFault(const FaultSpec& fault) {
    if (fault.random) {
      if (!fault.what.empty() || fault.server || fault.node || fault.by) {
        Say(fault.place, "random faults are drawn from the seed; leave out what, server, node, by");
      }
      return;
    }
    if (fault.what.empty()) {
      return problems_.AddAt(ProblemCode::kMissing, scenario_.file, fault.place, "",
                             "what happens? write what: and one of the faults, or random: 3");
    }
    if (fault.at.least >= Latest()) {
      Say(fault.place, "it would begin at " + TextOf(fault.at.least) + ", when all is over");
    }
    if (fault.server_fault) CheckServerFault(fault);
    if (fault.node_fault) CheckNodeFault(fault);
  }

  void CheckServerFault(const FaultSpec& fault) {
    const sim::FaultTraits& traits = sim::TraitsOf(*fault.server_fault);
    const StoreLayout layout = scenario_.store.layout;
    const std::string what = Quoted(traits.name);
    if (layout == StoreLayout::kMemory) {
      return Say(fault.place, what + " happens to servers, and with layout memory there are none");
    }
    const bool may_be_cluster = layout == StoreLayout::kCluster || layout == StoreLayout::kAny;
    const bool may_have_replica = may_be_cluster || layout == StoreLayout::kSentinel;
    if (traits.needs_cluster && !may_be_cluster) {
      Say(fault.place, what + " happens to clusters only; write layout: cluster");
    }
    if (traits.needs_replica && !may_have_replica) {
      Say(fault.place, what + " needs a replica; write layout: sentinel or cluster");
    }
    const int servers = ServersOf(scenario_.store).least;
    if (fault.server && *fault.server >= servers) {
      Say(fault.place, "there is no server " + std::to_string(*fault.server + 1) + ", only " +
                           std::to_string(servers));
    }
    if (fault.node) Say(fault.place, what + " happens to a server; write server, not node");
    if (fault.policy) Say(fault.place, "a policy comes with policy reload only");
  }

  void CheckNodeFault(const FaultSpec& fault) {
    const int nodes = scenario_.nodes.count.least;
    if (fault.node && *fault.node >= nodes) {
      Say(fault.place, "there is no node " + std::to_string(*fault.node + 1) + ", only " +
                           std::to_string(nodes));
    }
    if (fault.server) {
      Say(fault.place, Quoted(fault.what) + " happens to a node; write node, not server");
    }
    const bool reloads = *fault.node_fault == NodeFault::kReload;
    if (reloads && !fault.policy && scenario_.policy && !problems_.has_errors()) {
      Say(fault.place, "policy reload needs the policy that is to be in force then: policy:");
    }
    if (!reloads && fault.policy) {
      Say(fault.place, "a policy comes with policy reload only");
    }
  }

  // What two faults do to one server at a time nobody could tell apart. Each is told of one other:
  // all pairs of a long list would be more than anybody reads, or memory holds.
  void CheckOverlaps() {
    if (std::ssize(scenario_.faults) > kMostFaults) {
      return Say(scenario_.faults[kMostFaults].place,
                 "more than " + std::to_string(kMostFaults) + " faults in one run");
    }
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const FaultSpec& a = scenario_.faults[j];
        const FaultSpec& b = scenario_.faults[i];
        if (!a.server_fault || !b.server_fault) continue;
        if (a.server && b.server && *a.server != *b.server) continue;
        const bool is_apart =
            a.at.most + a.lasts.most <= b.at.least || b.at.most + b.lasts.most <= a.at.least;
        if (is_apart) continue;
        Say(b.place, "it may overlap with " + Quoted(a.what) + " at " + TextOf(a.at.least) +
                         "; let one end before the other begins, or give each a server");
        break;
      }
    }
  }

  const Scenario& scenario_;
  ProblemList& problems_;
};

}  // namespace

Between<int> ServersOf(const StoreSpec& store) {
  switch (store.layout) {
    case StoreLayout::kMemory:
      return Between<int>::Only(0);
    case StoreLayout::kShards:
    case StoreLayout::kCluster:
      return store.servers.value_or(Between<int>::Only(3));
    default:
      return Between<int>::Only(1);
  }
}

void CheckScenario(const Scenario& scenario, ProblemList& problems) {
  Check(scenario, problems).All();
}

}  // namespace weir::lab
