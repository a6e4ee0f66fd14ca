#include "lab/fleet/fleet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/fleet/drawn_policy.h"
#include "lab/fleet/judge.h"
#include "lab/fleet/scenario_check.h"
#include "lab/fleet/scenario_reader.h"
#include "sim/entropy.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

sim::Arrangement ArrangementOf(StoreLayout layout) {
  switch (layout) {
    case StoreLayout::kShards:
      return sim::Arrangement::kShards;
    case StoreLayout::kCluster:
      return sim::Arrangement::kCluster;
    case StoreLayout::kSentinel:
      return sim::Arrangement::kSentinel;
    default:
      return sim::Arrangement::kSingle;
  }
}

Duration EitherWay(Duration most, sim::Random& random) {
  return most == Duration(0) ? most : random.Between(-most, most);
}

// {n} is the client's number.
std::string WithNumber(std::string text, int number) {
  for (std::size_t at = text.find("{n}"); at != std::string::npos; at = text.find("{n}", at)) {
    text.replace(at, 3, std::to_string(number));
  }
  return text;
}

}  // namespace

Fleet::Fleet(const Scenario& scenario, std::uint64_t seed, sim::LuaEngine& lua,
             const FleetOptions& options)
    : scenario_(scenario),
      world_(seed),
      random_(world_.random().Fork()),
      network_(world_),
      lua_(lua),
      progress_(options.progress) {
  sim::SeedEntropy(seed);
  record_.scenario = scenario.name;
  record_.seed = seed;
  ends_ = record_.asked_until = scenario.duration.Draw(random_);
  DrawStore();
  record_.nodes = scenario.nodes.count.Draw(random_);
  record_.fleet_size = scenario.nodes.fleet_size.value_or(record_.nodes);
  DrawPolicy();
  MakeNodes(options);
  MakeClients();
  PlanFaults();
  PlanLooks();
}

Fleet::~Fleet() {
  // Whoever is still to be told something is told while the record is there.
  for (std::unique_ptr<Node>& node : nodes_) node.reset();
}

void Fleet::DrawStore() {
  const StoreSpec& store = scenario_.store;
  record_.layout = store.layout;
  if (store.layout == StoreLayout::kAny) {
    record_.layout = random_.OneOf({StoreLayout::kMemory, StoreLayout::kRedis, StoreLayout::kRedis,
                                    StoreLayout::kRedis, StoreLayout::kShards,
                                    StoreLayout::kCluster, StoreLayout::kSentinel});
  }
  record_.timeout = store.timeout.Draw(random_);
  record_.max_in_flight = store.max_in_flight.Draw(random_);
  connections_ = store.connections.Draw(random_);
  if (!record_.is_shared()) return;
  sim::DeploymentOptions options{.arrangement = ArrangementOf(record_.layout)};
  StoreSpec as_drawn = store;
  as_drawn.layout = record_.layout;
  options.servers = record_.servers = ServersOf(as_drawn).Draw(random_);
  options.clock_offset = record_.server_offset = EitherWay(store.clock_offset, random_);
  options.fair.least_latency = store.latency.least;
  options.fair.most_latency = store.latency.most;
  deployment_ = std::make_unique<sim::Deployment>(world_, network_, lua_, options);
}

void Fleet::DrawPolicy() {
  AddVersion(scenario_.policy ? *scenario_.policy : DrawnPolicy(random_));
}

void Fleet::AddVersion(PolicySpec spec) {
  spec.store =
      deployment_ != nullptr ? deployment_->addresses() : std::vector<std::string>{"memory"};
  spec.redis.timeout = record_.timeout;
  spec.redis.connections = connections_;
  spec.redis.max_in_flight = record_.max_in_flight;
  spec.fleet_size = record_.fleet_size;
  spec.memory.snapshot.clear();
  PolicyReport report = Policy::Make(std::move(spec));
  policies_.push_back(std::move(report.policy).value());
  for (const RuleSpec& rule : policies_.back().spec().rules) {
    if (std::ranges::find(record_.rules, rule.name) == record_.rules.end()) {
      record_.rules.push_back(rule.name);
    }
  }
}

void Fleet::MakeNodes(const FleetOptions& options) {
  const NodesSpec& spec = scenario_.nodes;
  for (int i = 0; i < record_.nodes; ++i) {
    NodeNote& note = record_.node_notes.emplace_back();
    note.wall_offset = EitherWay(spec.clock_offset, random_);
    if (spec.clock_drift_ppm > 0) {
      note.drift_ppm =
          static_cast<int>(random_.Between(-spec.clock_drift_ppm, spec.clock_drift_ppm));
    }
    Node::Options its{.seed = random_.Next() | 1,
                      .clock = {.wall_offset = note.wall_offset, .drift_ppm = note.drift_ppm},
                      .mistake = options.mistake,
                      .on_notice = [this, i](std::string_view text) {
                        constexpr std::size_t kMost = 200;
                        if (record_.notices.size() >= kMost) return;
                        const double at = std::chrono::duration<double>(world_.elapsed()).count();
                        record_.notices.push_back(std::to_string(at) + " s, node " +
                                                  std::to_string(i + 1) + ": " + std::string(text));
                      }};
    nodes_.push_back(
        std::make_unique<Node>(world_, network_, static_cast<Testimony&>(*this), std::move(its)));
    // The addresses are the world's own, so there is nothing that could not be used.
    nodes_.back()->Start(policies_.front()).value();
  }
  const auto count = static_cast<std::size_t>(record_.nodes);
  versions_at_.resize(count);
  starts_at_.resize(count);
  is_failing_.resize(count);
  degraded_since_.resize(count, Duration(-1));
}

void Fleet::MakeClients() {
  int number = 0;
  for (const ClientSpec& spec : scenario_.clients) {
    const int count = spec.count.Draw(random_);
    for (int i = 1; i <= count; ++i) {
      Client& client = clients_.emplace_back();
      client.spec = &spec;
      client.rate = spec.rate.Draw(random_);
      client.burst = spec.burst.Draw(random_);
      client.from = spec.from.Draw(random_);
      client.until = spec.until ? std::min(spec.until->Draw(random_), ends_) : ends_;
      client.node = static_cast<int>(random_.Index(nodes_.size()));
      client.attributes = spec.attributes;
      if (spec.attributes.empty()) {
        client.attributes["user"] = spec.name + "-{n}";
        client.attributes["ip"] = "10." + std::to_string(number / 65536 % 256) + "." +
                                  std::to_string(number / 256 % 256) + "." +
                                  std::to_string(number % 256);
      }
      ++number;
      NameClient(client, i);
      record_.clients.push_back({spec.name, spec.name + " " + std::to_string(i)});
    }
  }
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    Client& client = clients_[i];
    for (const auto& [name, value] : client.spec->headers) client.headers.push_back({name, value});
    client.request.headers = client.headers;
    PlanNext(static_cast<int>(i), true);
  }
}

void Fleet::NameClient(Client& client, int number) {
  for (auto& [name, value] : client.attributes) value = WithNumber(value, number);
}

void Fleet::PlanNext(int number, bool is_first) {
  Client& client = clients_[static_cast<std::size_t>(number)];
  const bool comes_at_once = client.spec->arrivals == Arrivals::kBursts;
  const double each = (comes_at_once ? client.burst : 1) / client.rate;
  constexpr std::int64_t kSteps = 1'000'000;
  const double part = static_cast<double>(random_.Between(1, kSteps)) / kSteps;
  double wait = each;
  if (client.spec->arrivals == Arrivals::kPoisson) {
    wait = -std::log(part) * each;
  } else if (is_first) {
    // Those who come in bursts come at once when they begin: that is what a herd is.
    wait = comes_at_once ? 0 : part * each;
  }
  // However long that is: it would not fit a duration.
  if (wait > std::chrono::duration<double>(kLongestRun).count()) return;
  const Duration begin = is_first ? client.from : world_.elapsed();
  const Duration at =
      begin + std::max(Duration(1), Duration(static_cast<std::int64_t>(wait * 1e9)));
  if (at >= client.until) return;
  world_.At(at, [this, number] {
    Client& asking = clients_[static_cast<std::size_t>(number)];
    const bool is_burst = asking.spec->arrivals == Arrivals::kBursts;
    for (int i = 0; i < (is_burst ? asking.burst : 1); ++i) Arrive(number);
    PlanNext(number, false);
  });
}

void Fleet::RunTo(Duration end) {
  if (progress_ == nullptr) return world_.RunUntil(end);
  constexpr Duration kStep = milliseconds(20);
  progress_->SetTotal(static_cast<std::uint64_t>((end + kStep - Duration(1)) / kStep));
  while (world_.elapsed() < end) {
    const std::size_t before = record_.asked.size();
    world_.RunUntil(std::min(end, world_.elapsed() + kStep));
    progress_->Advance(record_.asked.size() - before, 1);
  }
}

Record Fleet::Run() {
  // Who asked last has an answer, or waited for one as long as nodes wait.
  constexpr Duration kSpare = milliseconds(100);
  const Duration settled = std::max(Duration(seconds(1)), record_.timeout + kSpare);
  RunTo(std::max({ends_, record_.healed, HealedBefore(record_, Duration::max())}) + settled);
  record_.ended = world_.elapsed();
  is_over_ = true;  // Who was not told by now was not told.
  for (int i = 0; i < record_.nodes; ++i) {
    NodeNote& note = record_.node_notes[static_cast<std::size_t>(i)];
    NodeAt(i).AddCounts(note.counted);
    if (!NodeAt(i).is_up()) continue;
    const StoreHealth health = NodeAt(i).engine().Health();
    note.is_degraded_at_end = health.degraded;
    note.fleet_size_at_end = health.fleet_size;
  }
  ReadLedgers();
  record_.fingerprint = world_.fingerprint();
  record_.events = world_.events();
  // What is still under way is told from within the end of the nodes.
  for (std::unique_ptr<Node>& node : nodes_) node.reset();
  return std::move(record_);
}

}  // namespace weir::lab
