#include "lab/fleet/scenario_check.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>

#include "lab/fleet/scenario_reader.h"
#include "limit/limit_words.h"

namespace weir::lab {
namespace {

constexpr YamlPlace kTop{.line = 1, .column = 1};

bool IsOfWholeCluster(const FaultSpec& fault) {
  return fault.server_fault && sim::TraitsOf(*fault.server_fault).needs_cluster;
}

// When the last of it may be over.
Duration LatestEnd(const FaultSpec& fault) {
  const bool is_at_once = fault.server_fault && sim::TraitsOf(*fault.server_fault).is_at_once;
  return fault.at.most + (is_at_once ? Duration(0) : fault.lasts.most);
}

// Whether both may happen to one server, or need the same replica.
bool MayMeetOnServer(const FaultSpec& a, const FaultSpec& b) {
  if (!a.server_fault || !b.server_fault) return false;
  if (IsOfWholeCluster(a) || IsOfWholeCluster(b)) return true;
  const bool both_need_replica =
      sim::TraitsOf(*a.server_fault).needs_replica && sim::TraitsOf(*b.server_fault).needs_replica;
  return both_need_replica || !a.server || !b.server || *a.server == *b.server;
}

// Who is down cannot end, and who is started twice loses what it had.
bool MayRestartTogether(const FaultSpec& a, const FaultSpec& b) {
  const bool both_restart =
      a.node_fault == NodeFault::kRestart && b.node_fault == NodeFault::kRestart;
  return both_restart && (!a.node || !b.node || *a.node == *b.node);
}

class Check {
 public:
  Check(const Scenario& scenario, ProblemList& problems)
      : scenario_(scenario), problems_(problems) {}

  void All() {
    CheckStore();
    CheckClients();
    for (const FaultSpec& fault : scenario_.faults) CheckFault(fault);
    CheckOverlaps();
  }

 private:
  void Say(YamlPlace place, std::string message) {
    problems_.AddAt(ProblemCode::kOutOfRange, scenario_.file, place, "", std::move(message));
  }
  Duration Latest() const { return scenario_.duration.least; }

  void CheckStore() {
    const StoreSpec& store = scenario_.store;
    const bool may_be_several = store.layout == StoreLayout::kShards ||
                                store.layout == StoreLayout::kCluster ||
                                store.layout == StoreLayout::kAny;
    if (store.servers && !may_be_several) {
      Say(kTop, "store: servers has no meaning with layout " + std::string(NameOf(store.layout)) +
                    "; write layout: shards or cluster, or leave it out");
    }
    if (store.layout == StoreLayout::kMemory) return;
    // There and back, whoever takes longer than half the timeout is taken for broken; and whoever
    // connects goes there and back twice. Nothing else would be left to see.
    const Duration longest = std::min(store.timeout.least / 4, RedisSpec{}.connect_timeout / 5);
    if (store.latency.most > longest) {
      Say(kTop, "store: with a latency of " + TextOf(store.latency.most) +
                    " nodes take a store that is well for a broken one; write at most " +
                    TextOf(longest) +
                    ", a quarter of the timeout and never more than 40ms, and what: late or slow "
                    "for a fault");
    }
  }

  void CheckClients() {
    if (scenario_.clients.empty()) {
      return problems_.AddAt(ProblemCode::kMissing, scenario_.file, kTop, "",
                             "nobody asks for anything; write clients:");
    }
    double requests = 0;
    std::int64_t clients = 0;
    std::set<std::string> names;
    const double in_seconds = std::chrono::duration<double>(scenario_.duration.most).count();
    for (const ClientSpec& client : scenario_.clients) {
      // The first burst comes however low the rate is.
      const double at_start = client.arrivals == Arrivals::kBursts ? client.burst.most : 0;
      requests += (client.rate.most * in_seconds + at_start) * client.count.most;
      clients += client.count.most;
      if (!names.insert(client.name).second) {
        Say(kTop, "two groups of clients are called " + Quoted(client.name) +
                      "; give each a name of its own");
      }
      if (client.from.least >= Latest()) {
        Say(kTop, "clients " + Quoted(client.name) + " would begin at " +
                      TextOf(client.from.least) + ", when all is over");
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
      if (!fault.what.empty() || fault.server || fault.node || fault.by || fault.policy ||
          fault.says_for || fault.at.most > Duration(0)) {
        Say(fault.place, "random faults are drawn from the seed; leave out all else");
      }
      return CheckRandom(fault);
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

  // Random faults come one after the other; what else happened they would meet.
  void CheckRandom(const FaultSpec& fault) {
    for (const FaultSpec& other : scenario_.faults) {
      if (&other == &fault || other.node_fault == NodeFault::kReload) continue;
      return Say(fault.place,
                 "random faults may overlap with others; write random: once, beside nothing but "
                 "policy reload");
    }
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
    if (traits.needs_cluster && fault.server) {
      Say(fault.place, what + " happens to the whole cluster; leave out server");
    }
    if (fault.by && !traits.takes_by) SayNoBy(fault);
    if (fault.says_for && traits.is_at_once) SayNoFor(fault);
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
    const bool moves_clock =
        *fault.node_fault == NodeFault::kClockBack || *fault.node_fault == NodeFault::kClockAhead;
    if (fault.by && !moves_clock) SayNoBy(fault);
    if (fault.server) {
      Say(fault.place, Quoted(fault.what) + " happens to a node; write node, not server");
    }
    const bool reloads = *fault.node_fault == NodeFault::kReload;
    if (reloads && fault.says_for) SayNoFor(fault);
    if (reloads && !fault.policy && scenario_.policy && !problems_.has_errors()) {
      Say(fault.place, "policy reload needs the policy that is to be in force then: policy:");
    }
    if (!reloads && fault.policy) {
      Say(fault.place, "a policy comes with policy reload only");
    }
  }

  void SayNoBy(const FaultSpec& fault) {
    Say(fault.place, Quoted(fault.what) + " has no size; by goes with slow, late and clocks");
  }

  void SayNoFor(const FaultSpec& fault) {
    Say(fault.place, Quoted(fault.what) + " is over at once; leave out for");
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
        if (!MayMeetOnServer(a, b) && !MayRestartTogether(a, b)) continue;
        const bool is_apart = LatestEnd(a) <= b.at.least || LatestEnd(b) <= a.at.least;
        if (is_apart) continue;
        Say(b.place, "it may overlap with " + Quoted(a.what) + " at " + TextOf(a.at.least) +
                         "; let one end before the other begins" +
                         (CanBeApart(a, b) ? ", or give each a " + Victim(a) : ""));
        break;
      }
    }
  }

  // Whether it would help to say whom each happens to.
  static bool CanBeApart(const FaultSpec& a, const FaultSpec& b) {
    const bool both_fail_over =
        a.server_fault == sim::FaultKind::kFailover && b.server_fault == sim::FaultKind::kFailover;
    return !both_fail_over && !IsOfWholeCluster(a) && !IsOfWholeCluster(b);
  }
  static std::string Victim(const FaultSpec& fault) { return fault.node_fault ? "node" : "server"; }

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
