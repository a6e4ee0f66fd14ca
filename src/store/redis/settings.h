// Which servers hold the state, and how to talk to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/time.h>

#include "net/endpoint.h"
#include "net/tls.h"

namespace weir::redis {

enum class Layout : std::uint8_t {
  kServers,   // One, or several among which keys are divided.
  kCluster,   // Redis Cluster; the sites are where to ask for the others.
  kSentinel,  // A master found through sentinels, which are the sites.
};

// How to get in.
struct Credentials {
  std::string user{};      // Empty: the default user.
  std::string password{};  // Empty: none is asked for. Never logged.
};

struct Site {
  Endpoint endpoint{};
  Credentials credentials{};
  int database = 0;
  std::shared_ptr<const TlsClientContext> tls{};  // Null: in the clear.
};

struct Settings {
  Layout layout = Layout::kServers;
  std::vector<Site> sites{};
  std::string master_name{};         // kSentinel.
  Credentials master_credentials{};  // kSentinel: those of the sites are the sentinels'.
  int master_database = 0;           // kSentinel.

  Duration connect_timeout = std::chrono::milliseconds(200);
  Duration timeout = std::chrono::milliseconds(50);
  int connections = 1;       // For each thread and server.
  int max_in_flight = 1024;  // Groups for each connection; as many more may wait to be sent.
};

}  // namespace weir::redis
