// A scenario come true: nodes, clients, a store and its misfortunes in one world, from a seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lab/fleet/node.h"
#include "lab/fleet/record.h"
#include "lab/fleet/rulebook.h"
#include "lab/fleet/scenario.h"
#include "lab/progress.h"
#include "sim/deployment.h"
#include "sim/lua_engine.h"

namespace weir::lab {

struct FleetOptions {
  Progress* progress = nullptr;  // Told how far the run has come.
  // Tests only: what a build with a mistake would have between guard and client.
  MakeStore mistake{};
};

class Fleet final : private Testimony {
 public:
  // The engine may serve many, one after the other. A scenario that was read without problems.
  Fleet(const Scenario& scenario, std::uint64_t seed, sim::LuaEngine& lua,
        const FleetOptions& options = {});
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet();

  // Once.
  Record Run();

 private:
  // One who asks.
  struct Client {
    const ClientSpec* spec = nullptr;
    double rate = 1;
    int burst = 1;
    Duration from{0};
    Duration until{0};
    int node = 0;  // If it keeps to one.
    std::map<std::string, std::string> attributes{};
    std::vector<NamedValue> headers{};
    Request request{};
    // By version of the policy: what should come of it.
    std::map<int, std::pair<ExpectedUses, std::vector<Use>>> expected{};
  };

  // Testimony
  void OnStoreAsked(const Group& group) override;
  void OnStoreAnswered(const Group& group) override;

  // Setting up.
  void DrawStore();
  void DrawPolicy();
  void AddVersion(PolicySpec spec);
  void MakeNodes(const FleetOptions& options);
  void MakeClients();
  void NameClient(Client& client, int number);
  void PlanFaults();
  void PlanFault(const FaultSpec& fault);
  void PlanRandomFaults(int count);
  void PlanNodeFault(NodeFault kind, Duration begins, Duration ends, const FaultSpec& fault);
  void Restart(int number, Duration begins, Duration ends);
  void Reload(int version, Duration at, std::optional<int> only);
  void Apply(int number, int version);
  void PlanLooks();
  void LookAround();
  void LookAtNode(int number);
  void LookAtServers();

  // Asking.
  void PlanNext(int number, bool is_first);
  void Arrive(int number);
  std::optional<int> PickNode(const Client& client);
  void TakeUp(Asked& asked, std::int64_t cost);
  void OnTold(Asked& asked, const Told& told);
  void PlanRelease(Asked& asked, ReservationId reservation);
  const std::pair<ExpectedUses, std::vector<Use>>& ExpectedOf(int number, int version);
  void CompareWithCharges(Asked& asked, const Group& group) const;
  int TrackOf(const std::string& rule, const std::string& key);
  int LimitOf(const ExpectedUse& use, int version);

  void RunTo(Duration end);

  // At the end.
  void ReadLedgers();
  void ReadLedger(int number, int client_number, bool is_shared);

  Node& NodeAt(int number) { return *nodes_[static_cast<std::size_t>(number)]; }
  int& VersionAt(int number) { return versions_at_[static_cast<std::size_t>(number)]; }

  const Scenario& scenario_;
  sim::World world_;
  sim::Random random_;
  sim::Network network_;
  sim::LuaEngine& lua_;
  Progress* const progress_;
  std::unique_ptr<sim::Deployment> deployment_;
  Duration ends_{0};
  int connections_ = 1;
  std::vector<Policy> policies_;  // By version.
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<int> versions_at_;  // Which each node has.
  std::vector<int> starts_at_;    // How often each was started.
  std::vector<bool> is_failing_;  // The last call of each.
  std::vector<Duration> degraded_since_;
  std::optional<int> stopping_;  // The node that ends just now.
  std::vector<Client> clients_;
  std::map<std::pair<std::string, std::string>, int> track_numbers_;
  // By limit, rule and version: those whom a rule refuses have the same under all of them.
  std::map<std::tuple<const Limit*, std::uint32_t, int>, int> limit_numbers_;
  bool is_over_ = false;
  Asked* asking_ = nullptr;
  std::optional<WallTime>* peeking_ = nullptr;
  std::unordered_map<const Group*, Asked*> by_group_;
  std::unordered_map<const Group*, std::optional<WallTime>*> peeks_;
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> attempts_;  // By server.
  Record record_;
};

}  // namespace weir::lab
