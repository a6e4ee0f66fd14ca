#include "store/redis/topology.h"

#include "store/redis/cluster.h"
#include "store/redis/fixed_servers.h"
#include "store/redis/sentinel.h"

namespace weir::redis {

std::unique_ptr<Topology> MakeTopology(NodeMaker maker) {
  switch (maker.settings.layout) {
    case Layout::kCluster:
      return std::make_unique<Cluster>(std::move(maker));
    case Layout::kSentinel:
      return std::make_unique<SentinelMaster>(std::move(maker));
    default:
      return std::make_unique<FixedServers>(std::move(maker));
  }
}

}  // namespace weir::redis
