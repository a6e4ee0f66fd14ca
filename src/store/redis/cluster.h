// Redis Cluster: which master has which slot is asked of any of them, again when one of them points
// elsewhere or cannot be reached, and now and then.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/cluster_slots.h"
#include "store/redis/jitter.h"
#include "store/redis/topology.h"

namespace weir::redis {

class Cluster final : public Topology, private Node::Watcher {
 public:
  explicit Cluster(NodeMaker maker);
  ~Cluster() override;

  Node* Find(std::uint16_t slot) noexcept override { return owners_[slot]; }
  std::optional<Obstacle> WhyUnknown() noexcept override;
  bool IsSettled() noexcept override;
  bool divides_slots() const noexcept override { return true; }
  Node* FindPointedTo(const Endpoint& site, Node& asked) override;
  void Move(std::uint16_t slot, Node& there) noexcept override;
  void Suspect(Node& /*node*/) noexcept override { AskSoon(); }
  void CountFault(StoreFault fault, std::uint64_t calls) noexcept override {
    if (!members_.empty()) members_.begin()->second.node->CountFault(fault, calls);
  }

 private:
  class SlotsCall;
  struct Member {
    std::unique_ptr<Node> node;
    // Since when nobody has said that it is there.
    std::optional<SteadyTime> unlisted{};
  };

  void OnTrouble(Node& /*node*/) noexcept override { AskSoon(); }
  void OnReady(Node& node) noexcept override;

  Node& MemberAt(const Site& site);
  // One that had slots until now is not dropped at once.
  void Remember(const Node* owner) noexcept;
  void AddSeeds();
  void Ask();
  void AskSoon() noexcept;
  void OnTold(const std::vector<SlotRange>& ranges, const Node& asked);
  void OnNotTold(const CallEnd& end) noexcept;
  void Tick();
  void DropUnlisted(SteadyTime now);
  bool IsWell() const noexcept;
  std::optional<std::uint16_t> SlotOf(const Node& node) const noexcept;
  SteadyTime Time() noexcept { return maker_.loop.now().steady; }
  void WakeBy(SteadyTime when);

  const NodeMaker maker_;
  Jitter jitter_;
  std::map<std::string, Member> members_;  // By name.
  std::vector<Node*> owners_;              // By slot.
  bool has_map_ = false;
  std::optional<Obstacle> refusal_;  // Why nobody tells.
  bool is_asking_ = false;
  std::string asked_last_;
  SteadyTime ask_at_{};
  SteadyTime asked_at_ = SteadyTime::min();
  std::optional<SteadyTime> wake_at_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace weir::redis
