// One run: a fleet, its rules, its load and its misfortunes, all drawn from a seed; and a record of
// everything that was asked and answered.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/limit.h>

#include "process.h"
#include "sim/deployment.h"
#include "sim/lua_engine.h"
#include "sim/network.h"
#include "sim/world.h"
#include "store/store.h"

namespace weir::simulation {

using sim::Arrangement;
using sim::Deployment;
using sim::Fault;

struct RuleUnderTest {
  std::string name;
  Limit limit;
  FailureMode mode;
  // Counts everything and refuses nothing, so that what was charged can be seen at the end.
  bool is_ledger = false;
};

// One charge of a request.
struct Part {
  int rule = 0;
  int key = 0;
  std::int64_t cost = 1;
};

// What the store made of something.
enum class Fate : std::uint8_t {
  kNotAsked,
  kDecided,
  kUnknown,  // The time ran out: it may have taken effect, then or later.
  kFailed,   // Nothing was changed.
};

// Of a request that was let through, what it turned out to have cost: a reservation is committed or
// cancelled, a lease given back, some units of another are refunded.
struct Afterwards {
  int process = 0;
  Duration sent{0};
  Duration answered = Duration::max();
  Fate fate = Fate::kNotAsked;
  bool was_gone = false;  // Failed because there was nothing left to be settled.
  // Settled: what every part cost.
  std::optional<std::int64_t> settled{};
  // Refunded: of this part so many.
  std::size_t part = 0;
  std::int64_t refunded = 0;

  std::optional<Charge> charge{};
  Decision decision{};
  Group group{};
};

struct Asked {
  int process = 0;
  Duration at{0};
  std::vector<Part> parts{};
  bool breaker_was_open = false;
  bool is_split = false;  // Its keys live in several places.
  Fate fate = Fate::kNotAsked;
  std::string error{};  // What the store failed with.
  Duration answered{-1};
  int answers = 0;
  std::unique_ptr<Afterwards> afterwards{};
  // Of a reservation: somebody settled it once more, perhaps another way. Only one may count.
  std::unique_ptr<Afterwards> contradiction{};

  std::vector<Charge> charges{};
  std::vector<Decision> decisions{};
  std::vector<Receipt> receipts{};
  Group group{};
};

// A time during which a process stood still.
struct Hold {
  int process = 0;
  Duration begins{0};
  Duration ends{0};
};

class Scenario final : private Completion, private Testimony {
 public:
  // The engine may serve many, one after the other.
  Scenario(std::uint64_t seed, sim::LuaEngine& engine, Mistake mistake = Mistake::kNone);
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;
  ~Scenario();

  void Run();

  // What a judge needs.
  std::string Describe() const;
  const std::vector<RuleUnderTest>& rules() const noexcept { return rules_; }
  const std::vector<std::string>& keys() const noexcept { return keys_; }
  const std::deque<Asked>& asked() const noexcept { return asked_; }
  const std::vector<Fault>& faults() const noexcept { return faults_; }
  const std::vector<Hold>& holds() const noexcept { return holds_; }
  const redis::Settings& settings() const noexcept { return settings_; }
  Arrangement arrangement() const noexcept { return deployment_->arrangement(); }
  int processes() const noexcept { return static_cast<int>(processes_.size()); }
  bool counts_fleet() const noexcept { return counts_fleet_; }
  // When the last fault was over.
  Duration healed() const noexcept { return healed_; }
  Duration ended() const noexcept { return world_.elapsed(); }
  // When it was by the world's clock, if no server's was moved.
  Duration ToWorld(WallTime server) const;
  // How far the calendar of the servers is ahead, if none was moved.
  Duration ServerOffset() const { return deployment_->clock_offset(); }
  // What the steady clock of a process showed, since the world began.
  Duration ProcessTime(int process, Duration world) const;
  // What is left of a ledger after the run; nothing if it could not be asked.
  struct LedgerEntry {
    int rule;
    int key;
    std::optional<std::int64_t> charged;
  };
  const std::vector<LedgerEntry>& ledger() const noexcept { return ledger_; }
  // What was seen on the way: more under way, or more connections, than there may be.
  const std::vector<std::string>& excesses() const noexcept { return excesses_; }
  std::vector<int> fleet_sizes() const;
  // Whether a process thinks at the end that its store fails.
  bool IsDegraded() const;
  std::uint64_t fingerprint() const noexcept { return world_.fingerprint(); }
  std::uint64_t events() const noexcept { return world_.events(); }

 private:
  // Completion, Testimony
  void OnDecided(Group& group) noexcept override;
  void OnStoreAnswered(Group& group) override;

  void DrawRules();
  Limit DrawLimit();
  void DrawFaults();
  void MakeProcesses();
  void PlanRequests();
  void PlanNext(int process);
  void Ask(int process, std::vector<Part> parts);
  void Submit(int process, Asked& asked);
  void PlanAfterwards(Asked& asked);
  void Settle(Asked& asked);
  void Refund(Asked& asked);
  void PlanContradiction(Asked& asked);
  void SendAfterwards(Afterwards& after);
  void Replay(const Asked& asked);
  void LookAround();
  void AskLedgers();
  bool IsSplit(const std::vector<Part>& parts) const;

  const std::uint64_t seed_;
  const Mistake mistake_;
  sim::World world_;
  sim::Random random_;
  sim::Network network_;
  std::unique_ptr<Deployment> deployment_;
  redis::Settings settings_;
  bool counts_fleet_ = false;
  std::vector<RuleUnderTest> rules_;
  std::vector<std::string> keys_;
  std::vector<Fault> faults_;
  std::vector<Hold> holds_;
  Duration healed_{0};
  Duration ends_{0};
  Duration pause_between_{0};
  // How many ask for a reservation, and of the others how many give something back.
  int reserve_percent_ = 0;
  int refund_percent_ = 0;
  int contradict_percent_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  std::deque<Asked> asked_;
  std::unordered_map<Group*, Asked*> by_group_;
  std::unordered_map<Group*, Afterwards*> afterwards_by_group_;
  std::deque<Asked> replayed_;  // By mistake.
  std::vector<LedgerEntry> ledger_;
  std::vector<std::string> excesses_;
};

}  // namespace weir::simulation
