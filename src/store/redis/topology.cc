#include "store/redis/topology.h"

#include "store/redis/fixed_servers.h"

namespace weir::redis {

std::unique_ptr<Topology> MakeTopology(NodeMaker maker) {
  return std::make_unique<FixedServers>(std::move(maker));
}

}  // namespace weir::redis
