// A master that is found through sentinels: they are asked one after the other who it is, again
// when it cannot be reached or turns out to be a replica, and every second.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/jitter.h"
#include "store/redis/topology.h"

namespace weir::redis {

class SentinelMaster final : public Topology, private Node::Watcher {
 public:
  explicit SentinelMaster(NodeMaker maker);
  ~SentinelMaster() override;

  Node* Find(std::uint16_t /*slot*/) noexcept override { return master_.get(); }
  std::optional<Obstacle> WhyUnknown() noexcept override;
  bool IsSettled() noexcept override {
    return master_ != nullptr ? master_->IsSettled() : WhyUnknown().has_value();
  }
  bool is_single() const noexcept override { return true; }
  void Suspect(Node& /*node*/) noexcept override { AskAnother(); }
  void CountFault(StoreFault fault, std::uint64_t calls) noexcept override {
    if (!sentinels_.empty()) sentinels_.front()->CountFault(fault, calls);
  }

 private:
  class MasterCall;
  // It may still have calls under way.
  struct Former {
    std::unique_ptr<Node> node;
    SteadyTime since;
  };

  void OnTrouble(Node& node) noexcept override;
  void OnReady(Node& node) noexcept override;

  void Ask();
  void AskAnother() noexcept;
  void OnTold(const Endpoint& master);
  std::unique_ptr<Node> MakeMaster(const Endpoint& master);
  // One that was master a moment ago, with its connections: those who go back and forth between two
  // servers must not have more and more of them. Null if there is none.
  std::unique_ptr<Node> TakeFormer(const Endpoint& master);
  void OnNotTold(const CallEnd& end) noexcept;
  void OnUnknownName();
  void Tick();
  void WakeBy(SteadyTime when);
  SteadyTime Time() noexcept { return maker_.loop.now().steady; }

  const NodeMaker maker_;
  Jitter jitter_;
  std::vector<std::unique_ptr<Node>> sentinels_;
  std::unique_ptr<Node> master_;
  std::vector<Former> former_;
  std::size_t next_ = 0;  // Which sentinel is asked next.
  bool is_asking_ = false;
  std::optional<Obstacle> refusal_;
  SteadyTime ask_at_{};
  SteadyTime asked_at_ = SteadyTime::min();
  std::optional<SteadyTime> wake_at_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace weir::redis
