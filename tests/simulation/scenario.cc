#include "scenario.h"

#include <algorithm>
#include <utility>

namespace weir::simulation {
namespace {

using sim::Random;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kCalmFirst = milliseconds(800);
constexpr Duration kCalmLast = milliseconds(3500);

}  // namespace

Scenario::Scenario(std::uint64_t seed, sim::LuaEngine& engine, Mistake mistake)
    : seed_(seed),
      mistake_(mistake),
      world_(seed),
      random_(world_.random().Fork()),
      network_(world_) {
  const auto arrangement =
      random_.OneOf({Arrangement::kSingle, Arrangement::kSingle, Arrangement::kShards,
                     Arrangement::kCluster, Arrangement::kSentinel});
  deployment_ = std::make_unique<Deployment>(world_, network_, engine,
                                             sim::DeploymentOptions::Draw(arrangement, random_));
  settings_ = deployment_->settings();
  settings_.timeout = random_.OneOf({milliseconds(20), milliseconds(50)});
  // Fewer than may come at once, so that some must be turned away.
  if (random_.Chance(20)) settings_.max_in_flight = static_cast<int>(random_.Between(2, 8));
  if (random_.Chance(20)) settings_.connections = 2;
  reserve_percent_ = random_.OneOf({0, 0, 10, 50});
  refund_percent_ = random_.OneOf({0, 0, 10});
  contradict_percent_ = random_.OneOf({0, 20, 80});
  DrawRules();
  DrawFaults();
  MakeProcesses();
  PlanRequests();
}

Scenario::~Scenario() {
  // Whoever is still to be told something is told while the record is there.
  for (std::unique_ptr<Process>& process : processes_) process.reset();
}

Limit Scenario::DrawLimit() {
  LimitSpec spec;
  spec.algorithm =
      random_.OneOf({Algorithm::kTokenBucket, Algorithm::kTokenBucket, Algorithm::kLeakyBucket,
                     Algorithm::kFixedWindow, Algorithm::kSlidingWindow, Algorithm::kSlidingLog,
                     Algorithm::kConcurrency});
  spec.count = random_.Between(1, 40);
  spec.period = random_.Between(milliseconds(100), seconds(4));
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
      spec.burst = random_.Between(1, 30);
      break;
    case Algorithm::kLeakyBucket:
      spec.burst = random_.Between(1, 30);
      spec.queue = random_.Chance(50);
      break;
    case Algorithm::kSlidingWindow:
      spec.strict = random_.Chance(50);
      if (spec.strict) spec.sub_windows = static_cast<int>(random_.Between(2, 12));
      break;
    case Algorithm::kConcurrency:
      spec.count = random_.Between(1, 8);
      spec.period = {};
      spec.lease = random_.Between(milliseconds(100), seconds(2));
      break;
    default:
      break;
  }
  return Limit::Make(spec).value().ForSharedStore().value();
}

void Scenario::DrawRules() {
  const auto count = random_.Between(1, 3);
  for (int i = 0; i < count; ++i) {
    rules_.push_back({.name = "rule" + std::to_string(i),
                      .limit = DrawLimit(),
                      .mode = random_.OneOf({FailureMode::kStatic, FailureMode::kStatic,
                                             FailureMode::kOpen, FailureMode::kClosed})});
  }
  // So large, and so slow to come back, that nothing does during the run.
  LimitSpec ledger;
  ledger.algorithm = random_.OneOf({Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                                    Algorithm::kSlidingWindow, Algorithm::kSlidingLog});
  ledger.count = 10'000;
  ledger.period = ledger.algorithm == Algorithm::kTokenBucket
                      ? Duration(std::chrono::hours(24 * 300))
                      : Duration(std::chrono::hours(24));
  ledger.strict = ledger.algorithm == Algorithm::kSlidingWindow && random_.Chance(50);
  rules_.push_back({.name = "ledger",
                    .limit = Limit::Make(ledger).value().ForSharedStore().value(),
                    .mode = random_.OneOf({FailureMode::kOpen, FailureMode::kClosed}),
                    .is_ledger = true});
  const auto keys = random_.Between(1, 3);
  for (int i = 0; i < keys; ++i) {
    keys_.push_back("user=" + std::to_string(random_.Between(1, 1'000'000)) + "." +
                    std::to_string(i));
  }
}

void Scenario::DrawFaults() {
  const auto count = random_.Chance(10) ? 0 : random_.Between(1, 4);
  Duration at = kCalmFirst;
  for (int i = 0; i < count; ++i) {
    at += random_.Between(milliseconds(0), milliseconds(700));
    const Duration ends = at + random_.Between(milliseconds(20), milliseconds(1500));
    faults_.push_back(deployment_->Plan(
        {.kind = deployment_->DrawKind(random_), .begins = at, .ends = ends}, random_));
    healed_ = ends;
    at = ends;
  }
  ends_ = std::max(healed_, kCalmFirst) + kCalmLast;
}

void Scenario::MakeProcesses() {
  const auto count = static_cast<int>(random_.Between(1, 4));
  counts_fleet_ = random_.Chance(30);
  for (int i = 0; i < count; ++i) {
    Process::Options options{.settings = settings_,
                             .fleet_size = counts_fleet_ ? 0 : count,
                             .seed = random_.Next() | 1,
                             .clock = {.wall_offset = random_.Between(seconds(-60), seconds(60)),
                                       .drift_ppm = random_.Between(-100, 100)},
                             .mistake = mistake_};
    processes_.push_back(
        std::make_unique<Process>(world_, network_, static_cast<Testimony&>(*this), options));
    if (!random_.Chance(10)) continue;
    const Duration begins = random_.Between(kCalmFirst, std::max(healed_, 2 * kCalmFirst));
    const Hold hold{.process = i,
                    .begins = begins,
                    .ends = begins + random_.Between(milliseconds(5), milliseconds(500))};
    holds_.push_back(hold);
    healed_ = std::max(healed_, hold.ends);
    ends_ = std::max(ends_, healed_ + kCalmLast);
    world_.At(begins,
              [process = processes_.back().get(), hold] { process->loop.HoldUntil(hold.ends); });
  }
}

void Scenario::PlanRequests() {
  const auto total = random_.Between(20, 160);  // A second, of all.
  pause_between_ = Duration(seconds(1)) * processes() / total;
  for (int i = 0; i < processes(); ++i) PlanNext(i);
  for (Duration at{0}; at < ends_; at += milliseconds(50)) world_.At(at, [this] { LookAround(); });
}

void Scenario::PlanNext(int process) {
  const Duration at = world_.elapsed() + random_.Between(Duration(0), 2 * pause_between_);
  if (at >= ends_) return;
  world_.At(at, [this, process] {
    // Several at once, now and then.
    const auto count = random_.Chance(15) ? random_.Between(2, 8) : 1;
    for (int i = 0; i < count; ++i) {
      std::vector<Part> parts;
      const int key = static_cast<int>(random_.Index(keys_.size()));
      for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
        if (!random_.Chance(rules_[rule].is_ledger ? 60 : 50)) continue;
        // Mostly the same subject, as it is with real requests.
        const int other = static_cast<int>(random_.Index(keys_.size()));
        parts.push_back({.rule = static_cast<int>(rule),
                         .key = random_.Chance(80) ? key : other,
                         .cost = random_.Chance(80) ? 1 : random_.Between(1, 3)});
      }
      if (!parts.empty()) Ask(process, std::move(parts));
    }
    PlanNext(process);
  });
}

bool Scenario::IsSplit(const std::vector<Part>& parts) const {
  if (arrangement() == Arrangement::kSingle || arrangement() == Arrangement::kSentinel)
    return false;
  return std::ranges::any_of(parts, [&](const Part& part) { return part.key != parts[0].key; });
}

void Scenario::Ask(int process, std::vector<Part> parts) {
  Asked& asked = asked_.emplace_back();
  asked.process = process;
  asked.is_split = IsSplit(parts);
  asked.parts = std::move(parts);
  // As if it had come over the wire: in a turn of the process's own.
  processes_[static_cast<std::size_t>(process)]->loop.Post(
      [this, process, &asked] { Submit(process, asked); });
}

void Scenario::Submit(int number, Asked& asked) {
  Process& process = *processes_[static_cast<std::size_t>(number)];
  asked.at = world_.elapsed();
  for (const Part& part : asked.parts) {
    const RuleUnderTest& rule = rules_[static_cast<std::size_t>(part.rule)];
    const std::string& key = keys_[static_cast<std::size_t>(part.key)];
    asked.charges.push_back({.rule = rule.name,
                             .key = key,
                             .hash = process.store.Hash(rule.name + "\n" + key),
                             .limit = &rule.limit,
                             .cost = part.cost,
                             .on_failure = rule.mode});
  }
  asked.decisions.resize(asked.charges.size());
  if (random_.Chance(reserve_percent_)) asked.group.action = Action::kReserve;
  asked.group.charges = asked.charges;
  asked.group.decisions = asked.decisions;
  asked.receipts.resize(asked.charges.size());
  asked.group.receipts = asked.receipts;
  if (arrangement() == Arrangement::kSingle) {
    const std::vector<EndpointReport> reports = process.commons.Report();
    asked.breaker_was_open = !reports.empty() && reports.front().breaker_open;
  }
  by_group_[&asked.group] = &asked;
  process.store.Submit(std::span(&asked.group, 1), process.loop.now(), *this);
}

void Scenario::OnStoreAnswered(Group& group) {
  const Fate fate = !group.error                                ? Fate::kDecided
                    : group.error->code == ErrorCode::kDeadline ? Fate::kUnknown
                                                                : Fate::kFailed;
  if (const auto after = afterwards_by_group_.find(&group); after != afterwards_by_group_.end()) {
    after->second->fate = fate;
    after->second->was_gone = group.error && group.error->code == ErrorCode::kNotFound;
    return;
  }
  const auto found = by_group_.find(&group);
  if (found == by_group_.end()) return;
  Asked& asked = *found->second;
  asked.fate = fate;
  if (group.error) asked.error = group.error->message;
}

void Scenario::OnDecided(Group& group) noexcept {
  if (const auto after = afterwards_by_group_.find(&group); after != afterwards_by_group_.end()) {
    after->second->answered = world_.elapsed();
    return;
  }
  Asked& asked = *by_group_.at(&group);
  ++asked.answers;
  if (mistake_ == Mistake::kAnswersTwice && by_group_.size() % 100 == 0) ++asked.answers;
  asked.answered = world_.elapsed();
  if (mistake_ == Mistake::kLetsThroughWhenClosed &&
      group.decision.reason == Reason::kStoreFailure) {
    group.decision.allowed = true;
  }
  world_.Note(static_cast<std::uint64_t>(group.decision.allowed) * 16 +
              static_cast<std::uint64_t>(group.decision.source));
  if (mistake_ == Mistake::kReplaysAfterOutage && group.decision.allowed &&
      group.decision.source != Source::kStore) {
    world_.After(seconds(2), [this, &asked] { Replay(asked); });
  }
  if (group.decision.allowed) PlanAfterwards(asked);
}

// Some are never settled: what they took stays charged, and leases end by themselves.
void Scenario::PlanAfterwards(Asked& asked) {
  const bool settles = asked.group.reservation != ReservationId::kNone;
  if (!random_.Chance(settles ? 70 : refund_percent_)) return;
  // What the store has not charged it cannot give back.
  if (!settles && asked.fate != Fate::kDecided) return;
  world_.After(random_.Between(milliseconds(1), milliseconds(500)), [this, &asked, settles] {
    Process& process = *processes_[static_cast<std::size_t>(asked.process)];
    process.loop.Post([this, &asked, settles] { settles ? Settle(asked) : Refund(asked); });
  });
}

namespace {

// How a reservation is settled, or leases are given back.
void DrawSettlement(const Asked& asked, Afterwards& after, Random& random) {
  const bool commits = asked.group.action == Action::kReserve && random.Chance(60);
  // Now and then more than was reserved.
  after.settled = commits ? random.Between(0, random.Chance(20) ? 6 : 2) : 0;
  after.group = {.action = commits ? Action::kCommit : Action::kCancel,
                 .reservation = asked.group.reservation,
                 .cost = *after.settled};
}

}  // namespace

void Scenario::Settle(Asked& asked) {
  asked.afterwards = std::make_unique<Afterwards>();
  asked.afterwards->process = asked.process;
  DrawSettlement(asked, *asked.afterwards, random_);
  SendAfterwards(*asked.afterwards);
  // Of a reservation that the process keeps itself nobody else knows.
  const bool is_shared = asked.group.action == Action::kReserve && asked.fate == Fate::kDecided;
  if (is_shared && random_.Chance(contradict_percent_)) PlanContradiction(asked);
}

// At once, while the first is under way, or when its time has run out; also by somebody else.
void Scenario::PlanContradiction(Asked& asked) {
  const Duration delay = random_.OneOf(
      {Duration(0), random_.Between(Duration(0), settings_.timeout),
       random_.Between(settings_.timeout, settings_.timeout + Duration(milliseconds(200)))});
  const auto process = static_cast<int>(random_.Index(processes_.size()));
  asked.contradiction = std::make_unique<Afterwards>();
  asked.contradiction->process = random_.Chance(50) ? process : asked.process;
  DrawSettlement(asked, *asked.contradiction, random_);
  world_.After(delay, [this, &asked] {
    Process& by = *processes_[static_cast<std::size_t>(asked.contradiction->process)];
    by.loop.Post([this, &asked] { SendAfterwards(*asked.contradiction); });
  });
}

void Scenario::Refund(Asked& asked) {
  const std::size_t part = random_.Index(asked.parts.size());
  const Charge& charged = asked.charges[part];
  // Leases are given back by those who hold them.
  if (charged.limit->algorithm() == Algorithm::kConcurrency) return;
  asked.afterwards = std::make_unique<Afterwards>();
  Afterwards& after = *asked.afterwards;
  after.process = asked.process;
  after.part = part;
  after.refunded = random_.Between(1, charged.cost);
  after.charge = charged;
  after.charge->verb = Verb::kRefund;
  after.charge->cost = after.refunded;
  after.group = {.charges = std::span(&*after.charge, 1),
                 .decisions = std::span(&after.decision, 1)};
  SendAfterwards(after);
}

void Scenario::SendAfterwards(Afterwards& after) {
  Process& process = *processes_[static_cast<std::size_t>(after.process)];
  after.sent = world_.elapsed();
  afterwards_by_group_[&after.group] = &after;
  process.store.Submit(std::span(&after.group, 1), process.loop.now(), *this);
}

void Scenario::Replay(const Asked& asked) {
  struct Nobody final : Completion {
    void OnDecided(Group& /*group*/) noexcept override {}
  };
  static Nobody nobody;
  Process& process = *processes_[static_cast<std::size_t>(asked.process)];
  Asked& again = replayed_.emplace_back();
  again.charges = asked.charges;
  again.decisions.resize(again.charges.size());
  again.group.charges = again.charges;
  again.group.decisions = again.decisions;
  process.loop.Post([&process, &again] {
    process.store.Submit(std::span(&again.group, 1), process.loop.now(), nobody);
  });
}

void Scenario::LookAround() {
  const auto most = static_cast<std::uint64_t>(2 * settings_.max_in_flight * settings_.connections);
  for (const std::unique_ptr<Process>& process : processes_) {
    for (const EndpointReport& report : process->commons.Report()) {
      if (report.in_flight > most) {
        excesses_.push_back(std::to_string(report.in_flight) + " under way at " + report.name);
      }
    }
  }
  // One that ends may overlap with one that begins.
  const auto connections = static_cast<std::size_t>(2 * settings_.connections * processes());
  for (const std::unique_ptr<sim::RedisServer>& server : deployment_->servers()) {
    if (network_.ConnectionsAt(server->address()) > connections) {
      excesses_.push_back(std::to_string(network_.ConnectionsAt(server->address())) +
                          " connections to " + server->address());
    }
  }
}

void Scenario::Run() {
  world_.RunUntil(ends_ + seconds(1));
  AskLedgers();
}

// By the first process; nobody else asks any more.
void Scenario::AskLedgers() {
  struct Teller final : Completion {
    void OnDecided(Group& group) noexcept override { left = group.decision; }
    std::optional<Decision> left;
  };
  Process& process = *processes_.front();
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
    if (!rules_[rule].is_ledger) continue;
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      const Charge charge{.rule = rules_[rule].name,
                          .key = keys_[key],
                          .hash = process.store.Hash(rules_[rule].name + "\n" + keys_[key]),
                          .limit = &rules_[rule].limit,
                          .cost = 0,
                          .on_failure = FailureMode::kClosed};
      Decision decision;
      Group group{.charges = std::span(&charge, 1), .decisions = std::span(&decision, 1)};
      Teller teller;
      process.loop.Post(
          [&] { process.store.Submit(std::span(&group, 1), process.loop.now(), teller); });
      world_.RunFor(seconds(1));
      LedgerEntry entry{
          .rule = static_cast<int>(rule), .key = static_cast<int>(key), .charged = {}};
      if (teller.left && teller.left->source == Source::kStore) {
        entry.charged = rules_[rule].limit.capacity() - teller.left->remaining;
      }
      ledger_.push_back(entry);
    }
  }
}

Duration Scenario::ToWorld(WallTime server) const {
  return server - sim::SimLoop::Beginning() - deployment_->clock_offset();
}

Duration Scenario::ProcessTime(int process, Duration world) const {
  return processes_[static_cast<std::size_t>(process)]->loop.Shown(world);
}

std::vector<int> Scenario::fleet_sizes() const {
  std::vector<int> sizes;
  for (const std::unique_ptr<Process>& process : processes_) {
    sizes.push_back(process->guard.fleet_size());
  }
  return sizes;
}

bool Scenario::IsDegraded() const {
  return std::ranges::any_of(processes_,
                             [](const auto& process) { return process->guard.IsDegraded(); });
}

std::string Scenario::Describe() const {
  const auto ms = [](Duration time) { return std::to_string(time.count() / 1'000'000) + " ms"; };
  std::string text = "seed " + std::to_string(seed_) + ": " + std::string(NameOf(arrangement())) +
                     ", " + std::to_string(processes()) + " processes, timeout " +
                     ms(settings_.timeout) + "\n";
  for (const RuleUnderTest& rule : rules_) {
    constexpr const char* kModes[] = {"static", "open", "closed"};
    text += "  " + rule.name + ": " + std::string(NameOf(rule.limit.algorithm())) + " " +
            rule.limit.ToString() + (rule.limit.spec().queue ? ", queue" : "") +
            (rule.limit.spec().strict ? ", strict" : "") + ", " +
            kModes[static_cast<std::size_t>(rule.mode)] + "\n";
  }
  for (const Fault& fault : faults_) {
    text += "  " + ms(fault.begins) + " to " + ms(fault.ends) + ": " + fault.name + "\n";
  }
  for (const Hold& hold : holds_) {
    text += "  " + ms(hold.begins) + " to " + ms(hold.ends) + ": process " +
            std::to_string(hold.process) + " stands still\n";
  }
  return text;
}

}  // namespace weir::simulation
