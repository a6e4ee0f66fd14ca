// Servers that are given: one, or several that know nothing of each other and among which slots are
// divided by rendezvous: each slot belongs to the server whose name, hashed with the slot, scores
// highest. So the order in which they are listed does not matter, and when one is taken away only
// its slots move.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/redis/topology.h"

namespace weir::redis {

// For each slot, which of the servers has it.
std::vector<std::uint16_t> DivideSlots(std::span<const std::string> names);

class FixedServers final : public Topology, private Node::Watcher {
 public:
  explicit FixedServers(NodeMaker maker);

  Node* Find(std::uint16_t slot) noexcept override { return nodes_[owners_[slot]].get(); }
  std::optional<Obstacle> WhyUnknown() noexcept override { return std::nullopt; }
  bool IsSettled() noexcept override {
    return std::ranges::all_of(nodes_, [](const auto& node) { return node->IsSettled(); });
  }
  bool is_single() const noexcept override { return nodes_.size() == 1; }

 private:
  void OnTrouble(Node& /*node*/) noexcept override {}
  void OnReady(Node& /*node*/) noexcept override {}

  const NodeMaker maker_;
  std::vector<std::uint16_t> owners_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace weir::redis
