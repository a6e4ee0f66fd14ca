// Which server has which slot, and how that is found out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "net/loop.h"
#include "store/redis/node.h"
#include "store/redis/registry.h"
#include "store/redis/settings.h"

namespace weir::redis {

// Belongs to the loop's thread.
class Topology {
 public:
  virtual ~Topology() = default;

  // Null: not known (yet).
  virtual Node* Find(std::uint16_t slot) noexcept = 0;
  // When nothing is known: none if waiting is worth it.
  virtual std::optional<Obstacle> WhyUnknown() noexcept = 0;
  // Whether it is known of all that is there how it fares.
  virtual bool IsSettled() noexcept = 0;
  // Whether a call may have keys of one slot only.
  virtual bool divides_slots() const noexcept { return false; }
  // All slots are with one server.
  virtual bool is_single() const noexcept { return false; }

  // What `asked` pointed to. Null if it is nowhere.
  virtual Node* FindPointedTo(const Endpoint& /*site*/, Node& /*asked*/) { return nullptr; }
  // The slot is there from now on.
  virtual void Move(std::uint16_t /*slot*/, Node& /*there*/) noexcept {}
  // It may have lost its place to another.
  virtual void Suspect(Node& /*node*/) noexcept {}
  // Of calls that got to no server.
  virtual void CountFault(StoreFault /*fault*/, std::uint64_t /*calls*/) noexcept {}
};

// Between two questions about the layout while a server does not answer.
inline constexpr Duration kPauseWhenNotWell = std::chrono::milliseconds(250);
// For this long a server that has left the layout is kept: others may still point to it.
inline constexpr Duration kFormerKeptFor = std::chrono::seconds(2);

// What every layout needs to make nodes.
struct NodeMaker {
  Loop& loop;
  const Settings& settings;
  Registry& registry;
  // For a key of that slot, or of any if there is none.
  std::function<std::unique_ptr<Call>(std::optional<std::uint16_t>)> make_probe;
  // Something is known that was not before.
  std::function<void()> on_news;

  Node::Options Options() const {
    return {.connect_timeout = settings.connect_timeout,
            .timeout = settings.timeout,
            .connections = settings.connections,
            .max_in_flight = static_cast<std::size_t>(settings.max_in_flight)};
  }
  std::unique_ptr<Node> Make(Site site, Node::Options options, Node::Watcher& watcher) const {
    return std::make_unique<Node>(loop, std::move(site), std::move(options), registry, watcher);
  }
};

std::unique_ptr<Topology> MakeTopology(NodeMaker maker);

}  // namespace weir::redis
