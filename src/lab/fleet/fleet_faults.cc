// What goes wrong in a fleet, and what is watched all the while.
#include <algorithm>
#include <utility>

#include "lab/fleet/drawn_policy.h"
#include "lab/fleet/fleet.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kBetweenLooks = milliseconds(50);
constexpr std::size_t kLooksInASecond = 20;
// Before the first random fault, and after the last: so long a fleet takes to settle.
constexpr Duration kCalmFirst = milliseconds(800);
constexpr Duration kCalmLast = milliseconds(3500);

}  // namespace

void Fleet::PlanFaults() {
  for (const FaultSpec& fault : scenario_.faults) {
    if (fault.random) {
      PlanRandomFaults(fault.random->Draw(random_));
    } else {
      PlanFault(fault);
    }
  }
  for (const FaultNote& note : record_.faults) {
    record_.healed = std::max(record_.healed, note.ends);
  }
}

void Fleet::PlanFault(const FaultSpec& fault) {
  const Duration begins = fault.at.Draw(random_);
  const Duration ends = begins + fault.lasts.Draw(random_);
  if (fault.node_fault) return PlanNodeFault(*fault.node_fault, begins, ends, fault);
  if (deployment_ == nullptr) return;  // The seed has drawn a layout without servers.
  const sim::FaultTraits& traits = sim::TraitsOf(*fault.server_fault);
  const auto arrangement = deployment_->arrangement();
  const bool is_cluster = arrangement == sim::Arrangement::kCluster;
  if (traits.needs_cluster && !is_cluster) return;
  if (traits.needs_replica && !is_cluster && arrangement != sim::Arrangement::kSentinel) return;
  sim::FaultOrder order{.kind = *fault.server_fault,
                        .begins = begins,
                        .ends = traits.is_at_once ? begins : ends,
                        .server = fault.server};
  if (fault.by) order.by = fault.by->Draw(random_);
  const sim::Fault planned = deployment_->Plan(order, random_);
  record_.faults.push_back({.name = planned.name,
                            .begins = planned.begins,
                            .ends = planned.ends,
                            .server = planned.server,
                            .forgets = planned.forgets,
                            .moves_clock = planned.moves_clock,
                            .moves_clock_back = planned.moves_clock_back,
                            .is_harmless = planned.is_harmless});
  if (!planned.moves_clock) record_.faults.back().slows_by = order.by.value_or(Duration(0));
}

// One after the other, each in a part of the time.
void Fleet::PlanRandomFaults(int count) {
  const Duration first = std::min(kCalmFirst, ends_ / 4);
  const Duration last = std::max(ends_ - kCalmLast, first + ends_ / 4);
  const bool may_reload = !scenario_.policy;
  for (int i = 0; i < count; ++i) {
    const Duration from = first + (last - first) * i / count;
    const Duration to = first + (last - first) * (i + 1) / count;
    FaultSpec fault;
    fault.at = Between<Duration>::Only(from + random_.Between(Duration(0), (to - from) / 2));
    const Duration longest = std::min(to - fault.at.least, Duration(seconds(3)));
    fault.lasts = Between<Duration>::Only(random_.Between(longest / 20, longest));
    if (deployment_ == nullptr || random_.Chance(20)) {
      fault.node_fault = random_.OneOf({NodeFault::kPause, NodeFault::kRestart,
                                        NodeFault::kClockBack, NodeFault::kClockAhead,
                                        may_reload ? NodeFault::kReload : NodeFault::kPause});
      // As long as a machine may stand still without anybody calling it dead.
      if (fault.node_fault == NodeFault::kPause) {
        fault.lasts = Between<Duration>::Only(
            std::min(longest, random_.Between(milliseconds(5), milliseconds(900))));
      }
    } else {
      fault.server_fault = deployment_->DrawKind(random_);
    }
    PlanFault(fault);
  }
}

void Fleet::PlanNodeFault(NodeFault kind, Duration begins, Duration ends, const FaultSpec& fault) {
  if (kind == NodeFault::kReload) {
    PolicySpec next =
        fault.policy ? *fault.policy : WithOtherLimits(policies_.back().spec(), random_);
    AddVersion(std::move(next));
    return Reload(static_cast<int>(policies_.size()) - 1, begins, fault.node);
  }
  const auto drawn = static_cast<int>(random_.Index(nodes_.size()));
  const int number = fault.node.value_or(drawn);
  FaultNote note{.name = std::string(NameOf(kind)), .begins = begins, .ends = ends, .node = number};
  switch (kind) {
    case NodeFault::kPause:
      note.stops = true;
      world_.At(begins, [this, number, ends] { NodeAt(number).loop.HoldUntil(ends); });
      break;
    case NodeFault::kRestart:
      note.forgets = true;
      Restart(number, begins, ends);
      break;
    default: {
      note.moves_clock = true;
      note.moves_clock_back = kind == NodeFault::kClockBack;
      note.is_harmless = true;
      const Duration step =
          (fault.by ? fault.by->Draw(random_) : random_.Between(milliseconds(1), seconds(100))) *
          (note.moves_clock_back ? -1 : 1);
      world_.At(begins, [this, number, step] { NodeAt(number).loop.MoveWall(step); });
      world_.At(ends, [this, number, step] { NodeAt(number).loop.MoveWall(-step); });
      break;
    }
  }
  record_.faults.push_back(std::move(note));
}

void Fleet::Restart(int number, Duration begins, Duration ends) {
  world_.At(begins, [this, number] {
    if (!NodeAt(number).is_up()) return;
    NodeAt(number).AddCounts(record_.node_notes[static_cast<std::size_t>(number)].counted);
    stopping_ = number;
    NodeAt(number).Stop();
    stopping_.reset();
    ++starts_at_[static_cast<std::size_t>(number)];
  });
  world_.At(ends, [this, number] {
    if (NodeAt(number).is_up()) return;
    is_failing_[static_cast<std::size_t>(number)] = false;
    degraded_since_[static_cast<std::size_t>(number)] = Duration(-1);
    NodeAt(number).Start(policies_[static_cast<std::size_t>(VersionAt(number))]).value();
  });
}

// Nodes notice that a file has changed at their own time.
void Fleet::Reload(int version, Duration at, std::optional<int> only) {
  FaultNote note{.name = std::string(NameOf(NodeFault::kReload)),
                 .begins = at,
                 .ends = at,
                 .node = only,
                 .reloads = true,
                 .is_harmless = true};
  for (int i = 0; i < record_.nodes; ++i) {
    if (only && *only != i) continue;
    const Duration when = at + random_.Between(Duration(0), Duration(milliseconds(100)));
    note.ends = std::max(note.ends, when);
    world_.At(when, [this, i, version] {
      NodeAt(i).loop.Post([this, i, version] { Apply(i, version); });
    });
  }
  record_.faults.push_back(std::move(note));
}

void Fleet::Apply(int number, int version) {
  VersionAt(number) = version;
  if (NodeAt(number).is_up()) {
    NodeAt(number).engine().Apply(policies_[static_cast<std::size_t>(version)]).value();
  }
  const bool all_agree =
      std::ranges::all_of(versions_at_, [&](int its) { return its == versions_at_.front(); });
  std::vector<Disagreement>& all = record_.disagreements;
  const bool is_open = !all.empty() && all.back().ends == Duration::max();
  if (!all_agree && !is_open) all.push_back({.begins = world_.elapsed()});
  // What was asked before is answered by then.
  if (all_agree && is_open) all.back().ends = world_.elapsed() + record_.timeout;
}

void Fleet::PlanLooks() {
  if (deployment_ != nullptr) {
    for (const auto& server : deployment_->servers()) {
      attempts_.push_back({server->address(), {}});
    }
  }
  for (Duration at = kBetweenLooks; at < ends_ + seconds(1); at += kBetweenLooks) {
    world_.At(at, [this] { LookAround(); });
  }
}

void Fleet::LookAround() {
  Sample& sample = record_.samples.emplace_back();
  sample.at = world_.elapsed();
  for (int i = 0; i < record_.nodes; ++i) {
    if (NodeAt(i).is_up()) LookAtNode(i);
  }
  if (deployment_ != nullptr) LookAtServers();
}

void Fleet::LookAtNode(int number) {
  Node& node = NodeAt(number);
  const auto say = [&](const std::string& what) {
    record_.caps.excesses.push_back("node " + std::to_string(number + 1) + ": " + what);
  };
  const std::size_t bytes = node.engine().Stats().store.bytes;
  const auto cap = static_cast<std::size_t>(node.engine().policy().spec().memory.cap);
  ++record_.caps.looks;
  if (bytes > cap) say(std::to_string(bytes) + " bytes of " + std::to_string(cap));
  if (deployment_ == nullptr) return;
  const StoreHealth health = node.engine().Health();
  // As many as are under way may wait to be sent.
  const std::uint64_t most = 2 * static_cast<std::uint64_t>(record_.max_in_flight) *
                             static_cast<std::uint64_t>(connections_);
  for (const StoreHealth::Server& server : health.servers) {
    ++record_.caps.looks;
    record_.samples.back().in_flight += server.in_flight;
    if (server.in_flight > most) {
      say(std::to_string(server.in_flight) + " calls under way at " + server.name);
    }
  }
  NodeNote& note = record_.node_notes[static_cast<std::size_t>(number)];
  Duration& since = degraded_since_[static_cast<std::size_t>(number)];
  if (!health.degraded) {
    since = Duration(-1);
    return;
  }
  ++record_.samples.back().degraded_nodes;
  if (since < Duration(0)) since = world_.elapsed();
  note.degraded = std::max(note.degraded, health.degraded_for);
}

void Fleet::LookAtServers() {
  // One that ends may overlap with one that begins.
  const std::size_t most =
      2 * static_cast<std::size_t>(connections_) * static_cast<std::size_t>(record_.nodes);
  // Back-off begins with 25 ms on average and doubles: more than these are a storm.
  constexpr std::uint64_t kMostAttempts = 10;
  const std::uint64_t most_attempts =
      kMostAttempts * static_cast<std::uint64_t>(connections_ * record_.nodes);
  for (auto& [address, attempts] : attempts_) {
    ++record_.caps.looks;
    const std::size_t connections = network_.ConnectionsAt(address);
    if (connections > most) {
      record_.caps.excesses.push_back(std::to_string(connections) + " connections to " + address);
    }
    attempts.push_back(network_.AttemptsAt(address));
    const std::size_t looks = attempts.size();
    const std::uint64_t before =
        looks > kLooksInASecond ? attempts[looks - 1 - kLooksInASecond] : 0;
    ++record_.reconnects.looks;
    if (attempts.back() - before > most_attempts) {
      record_.reconnects.excesses.push_back(std::to_string(attempts.back() - before) +
                                            " attempts to connect to " + address +
                                            " within a second");
    }
  }
}

}  // namespace weir::lab
